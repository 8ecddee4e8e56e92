package machinehealthcheck

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestTheNodeOfAMachineIsNotAnothersOfItsName(t *testing.T) {
	const ours = "foo://1"
	cases := map[string]struct {
		nodeID string
		ref    string
		found  bool
	}{
		"its own":                      {nodeID: ours, ref: "n", found: true},
		"its own without a cloud":      {nodeID: "", ref: "n", found: true},
		"another's":                    {nodeID: "foo://2", ref: "n"},
		"one that is gone":             {nodeID: ours, ref: "gone"},
		"none that it has referred to": {nodeID: ours, ref: ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: corev1.NodeSpec{ProviderID: tc.nodeID}}
			machine := makeMachine("m", func(m *clusterv1.Machine) { m.Spec.ProviderID, m.Status.NodeRef.Name = ours, tc.ref })
			nodes := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(node).Build()
			got, err := nodeOf(t.Context(), nodes, machine)
			if err != nil || (got != nil) != tc.found {
				t.Errorf("Node %v, error %v; want found: %t", got, err, tc.found)
			}
		})
	}
}
