package workload

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTheCauseOfALossDoesNotChangeWithEveryAttempt(t *testing.T) {
	server := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 6443}
	reading := func(port int) error {
		return &url.Error{Op: "Get", URL: "https://x", Err: &net.OpError{
			Op: "read", Net: "tcp", Source: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port}, Addr: server, Err: syscall.ECONNRESET,
		}}
	}
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"no error":       {nil, ""},
		"a reset":        {reading(40001), "read 127.0.0.1:6443: connection reset by peer"},
		"another reset":  {fmt.Errorf("probe: %w", reading(40002)), "read 127.0.0.1:6443: connection reset by peer"},
		"a timeout":      {fmt.Errorf("probe: %w", context.DeadlineExceeded), "no answer in time"},
		"something else": {errors.New("the kubeconfig is empty"), "the kubeconfig is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (Health{Err: tc.err}).Cause(); got != tc.want {
				t.Errorf("cause %q, want %q", got, tc.want)
			}
		})
	}
}

func TestNodesDifferByMoreThanAHeartbeat(t *testing.T) {
	node := func(change func(*corev1.Node)) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", ResourceVersion: "1"}}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		change(n)
		return n
	}
	for name, tc := range map[string]struct {
		change func(*corev1.Node)
		want   bool
	}{
		"nothing": {func(*corev1.Node) {}, false},
		"a heartbeat": {func(n *corev1.Node) {
			n.Status.Conditions[0].LastHeartbeatTime = metav1.Unix(9, 0)
			n.ResourceVersion = "2"
		}, false},
		"images":      {func(n *corev1.Node) { n.Status.Images = []corev1.ContainerImage{{SizeBytes: 1}} }, false},
		"a condition": {func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse }, true},
		"a label":     {func(n *corev1.Node) { n.Labels = map[string]string{"a": "b"} }, true},
		"a taint":     {func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "k"}} }, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := differ(node(func(*corev1.Node) {}), node(tc.change)); got != tc.want {
				t.Errorf("differ %v, want %v", got, tc.want)
			}
		})
	}
}

func TestBackoffDoublesUpToItsLimit(t *testing.T) {
	b := newBackoff(firstContactWait, firstContactMaxWait)
	for i, want := range []time.Duration{100, 200, 400, 800, 1000, 1000} {
		if got := b.next(); got != want*time.Millisecond {
			t.Errorf("wait %d is %s, want %s", i, got, want*time.Millisecond)
		}
	}
}
