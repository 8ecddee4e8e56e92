package instant

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/millwright-dev/millwright/sandbox/internal/vcenter"
)

var machine = vcenter.Machine{Name: "node-1", UUID: "420a-b", KubernetesVersion: "v1.37.2", NumCPUs: 2, MemoryMiB: 4096}

// seen is what matters of a Node to whoever looks for the machine behind it.
type seen struct {
	UUID, Version string
	Ready         corev1.ConditionStatus
	Taints        []string
}

func look(t *testing.T, nodes *Nodes) seen {
	t.Helper()
	node, err := nodes.client.CoreV1().Nodes().Get(t.Context(), machine.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s := seen{UUID: node.Status.NodeInfo.SystemUUID, Version: node.Status.NodeInfo.KubeletVersion}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			s.Ready = c.Status
		}
	}
	for _, taint := range node.Spec.Taints {
		s.Taints = append(s.Taints, taint.Key)
	}
	return s
}

func TestANodeFollowsThePowerOfItsMachine(t *testing.T) {
	nodes := &Nodes{client: fake.NewClientset()}
	want := seen{UUID: "420a-b", Version: "v1.37.2", Ready: corev1.ConditionTrue, Taints: []string{"node.cluster.x-k8s.io/uninitialized"}}
	for _, step := range []struct {
		name string
		do   func() error
		want corev1.ConditionStatus
	}{
		{"power on", func() error { return nodes.Up(t.Context(), machine, "127.0.0.2") }, corev1.ConditionTrue},
		{"power off", func() error { return nodes.Down(t.Context(), machine) }, corev1.ConditionUnknown},
		{"power on again", func() error { return nodes.Up(t.Context(), machine, "127.0.0.2") }, corev1.ConditionTrue},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		want.Ready = step.want
		if diff := cmp.Diff(want, look(t, nodes)); diff != "" {
			t.Errorf("after %s (-want +got):\n%s", step.name, diff)
		}
	}
}

func TestAMachineWhoseNodeIsDeletedIsPoweredOffWithoutIt(t *testing.T) {
	nodes := &Nodes{client: fake.NewClientset()}
	if err := nodes.Down(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
}
