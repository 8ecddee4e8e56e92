package machineset

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestOnlyMachinesThatMayLackTheirObjectsAreCompleted(t *testing.T) {
	set := makeSet(ptr.To[int32](1), func(s *clusterv1.MachineSet) {
		s.Spec.Template.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: "infra.test", Kind: "FooMachineTemplate", Name: "t"}
		s.Spec.Template.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{APIGroup: "boot.test", Kind: "FooConfigTemplate", Name: "t"}
	})
	made := func(change ...func(*clusterv1.Machine)) *clusterv1.Machine {
		machine := newMachine(set, "m")
		machine.UID = "m"
		for _, f := range change {
			f(machine)
		}
		return machine
	}
	for name, tc := range map[string]struct {
		machine *clusterv1.Machine
		removed bool
		want    []string
	}{
		"one that was just made": {machine: made(), want: []string{"m"}},
		"one whose bootstrap data is there": {
			machine: made(func(m *clusterv1.Machine) { m.Status.Initialization.BootstrapDataSecretCreated = ptr.To(true) }),
			want:    []string{"m"},
		},
		"one that has started": {machine: made(func(m *clusterv1.Machine) {
			m.Status.Initialization.BootstrapDataSecretCreated, m.Status.Initialization.InfrastructureProvisioned = ptr.To(true), ptr.To(true)
		})},
		"one being deleted":                      {machine: made(beingDeleted)},
		"one that the plan deletes":              {machine: made(), removed: true},
		"an adopted one with objects of its own": {machine: made(func(m *clusterv1.Machine) { m.Spec.InfrastructureRef.Name = "own" })},
	} {
		t.Run(name, func(t *testing.T) {
			var removed []*clusterv1.Machine
			if tc.removed {
				removed = append(removed, tc.machine)
			}
			got := names(planCompletions(snapshot{set: set, machines: []*clusterv1.Machine{tc.machine}}, removed))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("to complete (-want +got):\n%s", diff)
			}
		})
	}
}

func TestACompleteMachineIsLookedAtOnceAndForgottenWithItsNeed(t *testing.T) {
	var c completion
	set := client.ObjectKey{Name: "s"}
	a, b := makeMachine("a", 1), makeMachine("b", 1)
	c.add(set, a.UID)
	if got := names(c.unknown(set, []*clusterv1.Machine{a, b})); !cmp.Equal(got, []string{"b"}) {
		t.Errorf("unknown are %v, want b", got)
	}
	c.unknown(set, nil)
	if got := names(c.unknown(set, []*clusterv1.Machine{a})); !cmp.Equal(got, []string{"a"}) {
		t.Errorf("unknown are %v, want a, which was no candidate in between", got)
	}
}
