package kubelet

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

var (
	noon    = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	machine = Machine{Hostname: "vm", SystemUUID: "4210aa", BootID: "b", Address: "127.64.16.5", Version: "v1.37.2", CPUs: 2, MemoryMiB: 8192}
)

func TestANodeSaysWhatItsMachineIs(t *testing.T) {
	s := Settings{NodeName: "node-1", CloudProvider: "external", MaxPods: 110, Labels: map[string]string{"tier": "x"},
		Taints: []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoSchedule}}}
	node := newNode(s, machine, noon)
	wantTaints := []corev1.Taint{
		{Key: "a", Effect: corev1.TaintEffectNoSchedule},
		{Key: "node.cloudprovider.kubernetes.io/uninitialized", Value: "true", Effect: corev1.TaintEffectNoSchedule},
	}
	if diff := cmp.Diff(wantTaints, node.Spec.Taints); diff != "" {
		t.Error(diff)
	}
	if len(s.Taints) != 1 {
		t.Error("the settings' taints changed")
	}
	if node.Labels["tier"] != "x" || node.Labels[corev1.LabelHostname] != "node-1" || node.Spec.ProviderID != "" {
		t.Errorf("labels %v, provider id %q", node.Labels, node.Spec.ProviderID)
	}
	info := node.Status.NodeInfo
	if info.SystemUUID != "4210aa" || info.KubeletVersion != "v1.37.2" || info.BootID != "b" {
		t.Errorf("node info %+v", info)
	}
	if got := node.Status.Allocatable.Memory().Value() >> 20; got != 8192-reservedMiB {
		t.Errorf("allocatable memory %d MiB", got)
	}
}

func TestAStatusKeepsWhatDidNotChange(t *testing.T) {
	s := Settings{NodeName: "node-1", MaxPods: 110}
	first := nodeStatus(s, machine, corev1.NodeStatus{}, noon)
	first.VolumesInUse = []corev1.UniqueVolumeName{"kept"}
	second := nodeStatus(s, machine, first, noon.Add(time.Minute))
	if !sameBeyondHeartbeat(first, second) {
		t.Error("only heartbeats moved, and the status is taken for another")
	}
	for _, c := range second.Conditions {
		if !c.LastTransitionTime.Time.Equal(noon) || !c.LastHeartbeatTime.Time.Equal(noon.Add(time.Minute)) {
			t.Errorf("%s: transition %s, heartbeat %s", c.Type, c.LastTransitionTime, c.LastHeartbeatTime)
		}
	}
	other := machine
	other.BootID = "after a reboot"
	if sameBeyondHeartbeat(second, nodeStatus(s, other, second, noon)) {
		t.Error("another boot goes unreported")
	}
}

func TestPodAddressesComeFromTheNode(t *testing.T) {
	cases := map[string]struct {
		cidr, guest string
		used        []string
		want        string
	}{
		"first of the pod CIDR": {cidr: "192.168.3.0/24", want: "192.168.3.2"},
		"the next":              {cidr: "192.168.3.0/24", used: []string{"192.168.3.2"}, want: "192.168.3.3"},
		"none left":             {cidr: "10.0.0.0/30", used: []string{"10.0.0.2"}, want: ""},
		"IPv6":                  {cidr: "fd00:1::/64", want: "fd00:1::2"},
		"no CIDR yet":           {guest: "127.64.16.5", want: "100.68.1.66"},
		"another guest's":       {guest: "127.64.16.6", want: "100.68.1.130"},
	}
	for name, tc := range cases {
		used := map[string]bool{}
		for _, address := range tc.used {
			used[address] = true
		}
		if got := nextAddress(tc.cidr, tc.guest, used); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
