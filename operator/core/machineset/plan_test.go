package machineset

import (
	"fmt"
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

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func makeSet(replicas *int32, change ...func(*clusterv1.MachineSet)) *clusterv1.MachineSet {
	set := &clusterv1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "workers", UID: "set-uid"},
		Spec:       clusterv1.MachineSetSpec{ClusterName: "prod", Replicas: replicas},
	}
	for _, f := range change {
		f(set)
	}
	return set
}

// makeMachine returns a healthy Machine, age minutes old at the end of the first hour.
func makeMachine(name string, age int, change ...func(*clusterv1.Machine)) *clusterv1.Machine {
	machine := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: types.UID(name),
			CreationTimestamp: metav1.NewTime(epoch.Add(time.Hour - time.Duration(age)*time.Minute)),
		},
		Spec:   clusterv1.MachineSpec{ClusterName: "prod"},
		Status: clusterv1.MachineStatus{NodeRef: clusterv1.MachineNodeReference{Name: name}},
	}
	conditions.Set(machine, conditions.True(clusterv1.MachineNodeHealthyCondition, "NodeHealthy", ""))
	for _, f := range change {
		f(machine)
	}
	return machine
}

func beingDeleted(m *clusterv1.Machine) { m.DeletionTimestamp = ptr.To(metav1.NewTime(epoch)) }
func unhealthy(m *clusterv1.Machine) {
	conditions.Set(m, conditions.False(clusterv1.MachineNodeHealthyCondition, "NodeNotHealthy", ""))
}
func noNode(m *clusterv1.Machine) { m.Status.NodeRef = clusterv1.MachineNodeReference{} }
func marked(m *clusterv1.Machine) {
	m.Annotations = map[string]string{clusterv1.DeleteMachineAnnotation: ""}
}

func order(o clusterv1.MachineSetDeletionOrder) func(*clusterv1.MachineSet) {
	return func(set *clusterv1.MachineSet) { set.Spec.Deletion.Order = o }
}

func TestPlanBringsASetToItsNumber(t *testing.T) {
	slot := func(n int) string { return "workers-" + suffix("set-uid", n) }
	cases := map[string]struct {
		set                    *clusterv1.MachineSet
		machines, orphans      []*clusterv1.Machine
		adopt, create, removed []string
	}{
		"creates what is missing": {
			set:    makeSet(ptr.To[int32](3)),
			create: []string{slot(0), slot(1), slot(2)},
		},
		"a second try asks for the same names": {
			set:      makeSet(ptr.To[int32](3)),
			machines: []*clusterv1.Machine{makeMachine(slot(1), 1)},
			create:   []string{slot(0), slot(2)},
		},
		"a Machine being deleted counts and keeps its name": {
			set:      makeSet(ptr.To[int32](2)),
			machines: []*clusterv1.Machine{makeMachine(slot(0), 1, beingDeleted)},
			create:   []string{slot(1)},
		},
		"no replacement before the one being deleted is gone": {
			set:      makeSet(ptr.To[int32](1)),
			machines: []*clusterv1.Machine{makeMachine(slot(0), 1, beingDeleted)},
		},
		"creation is disabled by annotation": {
			set: makeSet(ptr.To[int32](2), func(s *clusterv1.MachineSet) {
				s.Annotations = map[string]string{clusterv1.DisableMachineCreateAnnotation: "true"}
			}),
		},
		"unset replicas neither create nor delete": {
			set:      makeSet(nil),
			machines: []*clusterv1.Machine{makeMachine("a", 1)},
		},
		"orphans are adopted and count": {
			set:     makeSet(ptr.To[int32](2)),
			orphans: []*clusterv1.Machine{makeMachine(slot(0), 1)},
			adopt:   []string{slot(0)},
			create:  []string{slot(1)},
		},
		"an orphan of another cluster is left alone, and its name too": {
			set:     makeSet(ptr.To[int32](1)),
			orphans: []*clusterv1.Machine{makeMachine(slot(0), 1, func(m *clusterv1.Machine) { m.Spec.ClusterName = "dev" })},
			create:  []string{slot(1)},
		},
		"surplus: the ones being deleted are not replaced by others": {
			set:      makeSet(ptr.To[int32](1)),
			machines: []*clusterv1.Machine{makeMachine("a", 1), makeMachine("b", 2, beingDeleted)},
		},
		"surplus: annotated before unhealthy before oldest": {
			set: makeSet(ptr.To[int32](1), order(clusterv1.OldestMachineSetDeletionOrder)),
			machines: []*clusterv1.Machine{
				makeMachine("old", 9), makeMachine("new", 1), makeMachine("sick", 2, unhealthy), makeMachine("asked", 3, marked),
			},
			removed: []string{"asked", "sick", "old"},
		},
		"surplus: a Machine without a Node is unhealthy": {
			set:      makeSet(ptr.To[int32](1), order(clusterv1.OldestMachineSetDeletionOrder)),
			machines: []*clusterv1.Machine{makeMachine("old", 9), makeMachine("pending", 1, noNode)},
			removed:  []string{"pending"},
		},
		"surplus: newest first": {
			set:      makeSet(ptr.To[int32](1), order(clusterv1.NewestMachineSetDeletionOrder)),
			machines: []*clusterv1.Machine{makeMachine("old", 9), makeMachine("new", 1)},
			removed:  []string{"new"},
		},
		"scaled to none": {
			set:      makeSet(ptr.To[int32](0), order(clusterv1.OldestMachineSetDeletionOrder)),
			machines: []*clusterv1.Machine{makeMachine("a", 1), makeMachine("b", 2)},
			removed:  []string{"b", "a"},
		},
		"a set being deleted deletes all and adopts none": {
			set:      makeSet(ptr.To[int32](3), func(s *clusterv1.MachineSet) { s.DeletionTimestamp = ptr.To(metav1.NewTime(epoch)) }),
			machines: []*clusterv1.Machine{makeMachine("a", 1), makeMachine("b", 2, beingDeleted)},
			orphans:  []*clusterv1.Machine{makeMachine("c", 1)},
			removed:  []string{"a"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := makePlan(snapshot{set: tc.set, machines: tc.machines, orphans: tc.orphans})
			for what, diff := range map[string]string{
				"adopt":  cmp.Diff(tc.adopt, names(got.adopt)),
				"create": cmp.Diff(tc.create, names(got.create)),
				"remove": cmp.Diff(tc.removed, names(got.remove)),
			} {
				if diff != "" {
					t.Errorf("%s (-want +got):\n%s", what, diff)
				}
			}
		})
	}
}

func names(machines []*clusterv1.Machine) []string {
	var out []string
	for _, machine := range machines {
		out = append(out, machine.Name)
	}
	return out
}

func TestRandomOrderIsTheSameOnEveryTry(t *testing.T) {
	var machines []*clusterv1.Machine
	for i := range 20 {
		machines = append(machines, makeMachine(fmt.Sprintf("m%d", i), i))
	}
	set := makeSet(ptr.To[int32](15))
	first := names(makePlan(snapshot{set: set, machines: machines}).remove)
	reversed := make([]*clusterv1.Machine, len(machines))
	for i, machine := range machines {
		reversed[len(machines)-1-i] = machine
	}
	if diff := cmp.Diff(first, names(makePlan(snapshot{set: set, machines: reversed}).remove)); diff != "" {
		t.Errorf("another order of the same Machines changed the choice (-first +second):\n%s", diff)
	}
}

func TestNewMachinesAreSpreadOverFailureDomains(t *testing.T) {
	in := func(domain string) func(*clusterv1.Machine) {
		return func(m *clusterv1.Machine) { m.Spec.FailureDomain = domain }
	}
	domains := []string{"a", "b", "c"}
	cases := map[string]struct {
		replicas int32
		domains  []string
		machines []*clusterv1.Machine
		want     map[string]int
	}{
		"a balanced start": {replicas: 7, domains: domains, want: map[string]int{"a": 3, "b": 2, "c": 2}},
		"those with the fewest first": {
			replicas: 6, domains: domains,
			machines: []*clusterv1.Machine{makeMachine("1", 1, in("a")), makeMachine("2", 1, in("a")), makeMachine("3", 1, in("b"))},
			want:     map[string]int{"b": 1, "c": 2},
		},
		"one being deleted leaves its domain": {
			replicas: 3, domains: domains,
			machines: []*clusterv1.Machine{makeMachine("1", 1, in("a"), beingDeleted), makeMachine("2", 1, in("b"))},
			want:     map[string]int{"a": 1},
		},
		"no domains": {replicas: 2, want: map[string]int{"": 2}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := makePlan(snapshot{set: makeSet(&tc.replicas), machines: tc.machines, domains: tc.domains})
			if diff := cmp.Diff(tc.want, lifecycle.CountDomains(got.create)); diff != "" {
				t.Errorf("domains of the new Machines (-want +got):\n%s", diff)
			}
		})
	}
}

func TestASecondTryPutsAMachineIntoTheSameFailureDomain(t *testing.T) {
	s := snapshot{set: makeSet(ptr.To[int32](6)), domains: []string{"a", "b", "c"}}
	first := makePlan(s).create
	// The cache has seen every second one.
	for i := 0; i < len(first); i += 2 {
		s.machines = append(s.machines, first[i])
	}
	for _, again := range makePlan(s).create {
		for _, machine := range first {
			if machine.Name == again.Name && machine.Spec.FailureDomain != again.Spec.FailureDomain {
				t.Errorf("%s goes to %q, went to %q before", again.Name, again.Spec.FailureDomain, machine.Spec.FailureDomain)
			}
		}
	}
}
