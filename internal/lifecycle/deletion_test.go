package lifecycle_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/lifecycle"
)

// aMachine returns an available Machine, hours old.
func aMachine(name string, hours int, change ...func(*clusterv1.Machine)) *clusterv1.Machine {
	machine := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID(name), Annotations: map[string]string{},
			CreationTimestamp: metav1.NewTime(time.Date(2026, 1, 9, 0, 0, 0, 0, time.UTC).Add(-time.Duration(hours) * time.Hour)),
		},
		Status: clusterv1.MachineStatus{NodeRef: clusterv1.MachineNodeReference{Name: name}},
	}
	conditions.Set(machine, conditions.True(clusterv1.MachineNodeHealthyCondition, "NodeHealthy", ""))
	conditions.Set(machine, conditions.True(clusterv1.MachineAvailableCondition, "Available", ""))
	for _, f := range change {
		f(machine)
	}
	return machine
}

func deleting(m *clusterv1.Machine) { m.DeletionTimestamp = ptr.To(metav1.Now()) }
func marked(m *clusterv1.Machine)   { m.Annotations[clusterv1.DeleteMachineAnnotation] = "" }
func sick(m *clusterv1.Machine) {
	conditions.Set(m, conditions.False(clusterv1.MachineNodeHealthyCondition, "NodeNotHealthy", ""))
}
func starting(m *clusterv1.Machine) {
	conditions.Set(m, conditions.False(clusterv1.MachineAvailableCondition, "NotReady", ""))
}
func in(domain string) func(*clusterv1.Machine) {
	return func(m *clusterv1.Machine) { m.Spec.FailureDomain = domain }
}

func TestMachinesAreDeletedInOrder(t *testing.T) {
	machines := []*clusterv1.Machine{
		aMachine("young", 1), aMachine("old", 9), aMachine("marked", 5, marked), aMachine("sick", 4, sick),
		aMachine("starting", 3, starting), aMachine("going", 2, deleting), aMachine("marked-and-sick", 6, marked, sick),
	}
	spread := []*clusterv1.Machine{
		aMachine("a1", 1, in("a")), aMachine("b1", 2, in("b")), aMachine("b2", 3, in("b")), aMachine("b3", 4, in("b")), aMachine("c1", 5, in("c"), sick),
		aMachine("b0", 6, in("b"), deleting),
	}
	cases := map[string]struct {
		deletion lifecycle.Deletion
		machines []*clusterv1.Machine
		want     []string
	}{
		"oldest": {
			deletion: lifecycle.Deletion{Order: clusterv1.OldestMachineSetDeletionOrder}, machines: machines,
			want: []string{"going", "marked-and-sick", "marked", "sick", "starting", "old", "young"},
		},
		"newest": {
			deletion: lifecycle.Deletion{Order: clusterv1.NewestMachineSetDeletionOrder}, machines: machines,
			want: []string{"going", "marked", "marked-and-sick", "sick", "starting", "young", "old"},
		},
		"an old set of a rollout spares what is marked while others are of no use": {
			deletion: lifecycle.Deletion{Order: clusterv1.OldestMachineSetDeletionOrder, Leaving: true}, machines: machines,
			want: []string{"going", "marked-and-sick", "sick", "starting", "marked", "old", "young"},
		},
		"the fullest failure domain first, among those of one rank": {
			deletion: lifecycle.Deletion{Order: clusterv1.OldestMachineSetDeletionOrder, Spread: true}, machines: spread,
			want: []string{"b0", "c1", "b3", "b2", "b1", "a1"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, machine := range tc.deletion.Sort(tc.machines) {
				got = append(got, machine.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("order (-want +got):\n%s", diff)
			}
		})
	}
}
