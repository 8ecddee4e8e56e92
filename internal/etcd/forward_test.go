package etcd

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// forwardServer answers port-forward requests over SPDY: data is echoed, and failure, if set, is
// sent on the error stream instead.
func forwardServer(t *testing.T, failure string) *rest.Config {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/namespaces/kube-system/pods/etcd-cp-1/portforward" {
			http.NotFound(w, r)
			return
		}
		if _, err := httpstream.Handshake(r, w, []string{portforward.PortForwardProtocolV1Name}); err != nil {
			return
		}
		streams := make(chan httpstream.Stream, 8)
		connection := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(stream httpstream.Stream, _ <-chan struct{}) error {
			streams <- stream
			return nil
		})
		if connection == nil {
			return
		}
		for {
			select {
			case stream := <-streams:
				go answer(stream, failure)
			case <-connection.CloseChan():
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

func answer(stream httpstream.Stream, failure string) {
	defer stream.Close()
	switch {
	case stream.Headers().Get(corev1.PortHeader) != "2379":
		_, _ = io.WriteString(stream, "wrong port")
	case stream.Headers().Get(corev1.StreamType) == corev1.StreamTypeData && failure == "":
		_, _ = io.Copy(stream, stream)
	case stream.Headers().Get(corev1.StreamType) == corev1.StreamTypeError && failure != "":
		_, _ = io.WriteString(stream, failure)
	}
}

func forwarder(t *testing.T, config *rest.Config, pod string) *Forwarder {
	t.Helper()
	f, err := NewForwarder(config, kubernetes.NewForConfigOrDie(config), "kube-system", pod, Port)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

func TestSeveralConnectionsShareOnePortForward(t *testing.T) {
	f := forwarder(t, forwardServer(t, ""), "etcd-cp-1")
	for _, message := range []string{"first", "second"} {
		conn, err := f.Dial(soon(t), "ignored")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, message); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(message))
		if _, err := io.ReadFull(conn, got); err != nil || string(got) != message {
			t.Errorf("read %q, %v; want %q", got, err, message)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
	f.Close()
	if _, err := f.Dial(soon(t), ""); err == nil {
		t.Error("a closed forwarder dials")
	}
}

func TestFarSidesComplaintReachesTheReader(t *testing.T) {
	f := forwarder(t, forwardServer(t, "connection refused by 2379"), "etcd-cp-1")
	conn, err := f.Dial(soon(t), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(conn); err == nil || !strings.Contains(err.Error(), "connection refused by 2379") {
		t.Errorf("error %v, want the complaint", err)
	}
}

func TestMissingPodIsAnErrorThatNamesIt(t *testing.T) {
	f := forwarder(t, forwardServer(t, ""), "etcd-gone")
	if _, err := f.Dial(soon(t), ""); err == nil || !strings.Contains(err.Error(), "pod kube-system/etcd-gone port 2379") {
		t.Errorf("error %v does not name the pod", err)
	}
}

func TestSilentServerIsLeftAtTheDeadline(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(release) })
	f := forwarder(t, &rest.Config{Host: server.URL}, "etcd-cp-1")
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := f.Dial(ctx, ""); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want deadline exceeded", err)
	}
}
