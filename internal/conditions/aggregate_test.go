package conditions_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/conditions"
)

func TestAggregateFoldsTheConditionsOfManyObjectsIntoOne(t *testing.T) {
	machine := func(name string, c ...metav1.Condition) *clusterv1.Machine {
		m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name}}
		m.SetConditions(c)
		return m
	}
	ready := conditions.True("Ready", "Ready", "")
	broken := conditions.False("Ready", "NotReady", "Node is gone")

	cases := map[string]struct {
		machines []*clusterv1.Machine
		want     metav1.Condition
	}{
		"no machine is true with a reason of its own": {
			want: conditions.True("MachinesReady", "NoReplicas", ""),
		},
		"all true": {
			machines: []*clusterv1.Machine{machine("a", ready), machine("b", ready)},
			want:     conditions.True("MachinesReady", "AllReady", ""),
		},
		"an unreported condition is unknown": {
			machines: []*clusterv1.Machine{machine("a", ready), machine("b")},
			want:     conditions.Unknown("MachinesReady", "SomeUnknown", "* Machine b: Condition Ready not yet reported"),
		},
		"false wins over unknown and comes first": {
			machines: []*clusterv1.Machine{machine("a"), machine("b", broken)},
			want: conditions.False("MachinesReady", "SomeNotReady",
				"* Machine b: Node is gone\n* Machine a: Condition Ready not yet reported"),
		},
		"machines with the same cause are one line": {
			machines: []*clusterv1.Machine{
				machine("e", broken), machine("d", broken), machine("c", broken), machine("b", broken), machine("a", broken),
			},
			want: conditions.False("MachinesReady", "SomeNotReady", "* Machines a, b, c, ... (2 more): Node is gone"),
		},
		"a list of causes stands below the machine": {
			machines: []*clusterv1.Machine{machine("a", conditions.False("Ready", "NotReady", "* one\n* two"))},
			want:     conditions.False("MachinesReady", "SomeNotReady", "* Machine a:\n  * one\n  * two"),
		},
		"more causes than fit are counted": {
			machines: []*clusterv1.Machine{
				machine("a", conditions.False("Ready", "NotReady", "1")), machine("b", conditions.False("Ready", "NotReady", "2")),
				machine("c", conditions.False("Ready", "NotReady", "3")), machine("d", conditions.False("Ready", "NotReady", "4")),
			},
			want: conditions.False("MachinesReady", "SomeNotReady",
				"* Machine a: 1\n* Machine b: 2\n* Machine c: 3\n* And 1 more Machine with other causes"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := conditions.Aggregate(tc.machines, conditions.Aggregation{
				From: "Ready", To: "MachinesReady", Kind: "Machine",
				True: "AllReady", False: "SomeNotReady", Unknown: "SomeUnknown", Empty: "NoReplicas",
			})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("condition (-want +got):\n%s", diff)
			}
		})
	}
}
