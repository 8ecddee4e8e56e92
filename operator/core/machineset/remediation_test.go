package machineset

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/conditions"
)

func bearing(c metav1.Condition) func(*clusterv1.Machine) {
	return func(m *clusterv1.Machine) { conditions.Set(m, c) }
}

var (
	failedCheck = bearing(conditions.False(clusterv1.MachineHealthCheckSucceededCondition, "UnhealthyNode", ""))
	passedCheck = bearing(conditions.True(clusterv1.MachineHealthCheckSucceededCondition, "HealthCheckSucceeded", ""))
	asked       = owner("WaitingForRemediation")
	begun       = owner("MachineDeleting")
)

func owner(reason string) func(*clusterv1.Machine) {
	return bearing(conditions.False(clusterv1.MachineOwnerRemediatedCondition, reason, ""))
}

func annotated(key string) func(*clusterv1.Machine) {
	return func(m *clusterv1.Machine) { metav1.SetMetaDataAnnotation(&m.ObjectMeta, key, "") }
}

func makeDeployment(maxInFlight *intstr.IntOrString) *clusterv1.MachineDeployment {
	deployment := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "workers"}}
	deployment.Spec.Replicas = ptr.To[int32](5)
	deployment.Spec.Remediation.MaxInFlight = maxInFlight
	return deployment
}

func TestMachinesThatFailedTheirHealthCheckAreReplaced(t *testing.T) {
	sick := func(name string, age int, change ...func(*clusterv1.Machine)) *clusterv1.Machine {
		return makeMachine(name, age, append([]func(*clusterv1.Machine){failedCheck, asked}, change...)...)
	}
	one := ptr.To(intstr.FromInt32(1))
	outdated := makeDeployment(nil)
	outdated.Annotations = map[string]string{clusterv1.RevisionAnnotation: "2"}

	cases := map[string]struct {
		deployment *clusterv1.MachineDeployment
		blocked    []string
		machines   []*clusterv1.Machine
		// want tells what is done about each Machine, in order: "name: reason", with "delete" before it, or "name: -"
		// where the condition is removed.
		want []string
		word string
	}{
		"nobody asked": {machines: []*clusterv1.Machine{makeMachine("a", 1), makeMachine("b", 1, failedCheck)}},
		"the newest first": {
			machines: []*clusterv1.Machine{sick("old", 9), makeMachine("well", 5, passedCheck), sick("new", 1)},
			want:     []string{"delete new: MachineDeleting", "delete old: MachineDeleting"},
		},
		"the one that a user asks for before it, the others wait": {
			deployment: makeDeployment(one),
			machines:   []*clusterv1.Machine{sick("new", 1), sick("old", 9, annotated(clusterv1.RemediateMachineAnnotation))},
			want:       []string{"delete old: MachineDeleting", "new: RemediationDeferred"},
			word:       "maxInFlight of MachineDeployment workers is 1",
		},
		"what is under way counts": {
			deployment: makeDeployment(one),
			machines:   []*clusterv1.Machine{sick("a", 1), makeMachine("going", 2, failedCheck, begun, beingDeleted)},
			want:       []string{"a: RemediationDeferred"},
		},
		"a deletion for another reason does not": {
			deployment: makeDeployment(one),
			machines:   []*clusterv1.Machine{sick("a", 1), makeMachine("going", 2, failedCheck, asked, beingDeleted)},
			want:       []string{"delete a: MachineDeleting"},
		},
		"a percentage of the deployment's replicas rounds up": {
			deployment: makeDeployment(ptr.To(intstr.FromString("30%"))),
			machines:   []*clusterv1.Machine{sick("a", 1), sick("b", 2), sick("c", 3)},
			want:       []string{"delete a: MachineDeleting", "delete b: MachineDeleting", "c: RemediationDeferred"},
		},
		"a limit that is no number": {
			deployment: makeDeployment(ptr.To(intstr.FromString("few"))),
			machines:   []*clusterv1.Machine{sick("a", 1)},
			want:       []string{"a: RemediationDeferred"},
			word:       `is "few"`,
		},
		"a deletion that did not come through is tried again": {
			machines: []*clusterv1.Machine{makeMachine("a", 1, failedCheck, begun)},
			want:     []string{"delete a: MachineDeleting"},
		},
		"no replacement could be made": {
			blocked:  []string{"the template is missing"},
			machines: []*clusterv1.Machine{sick("a", 1)},
			want:     []string{"a: RemediationDeferred"},
			word:     "* the template is missing",
		},
		"a rollout removes the set": {
			deployment: outdated,
			machines:   []*clusterv1.Machine{sick("a", 1)},
			want:       []string{"a: CannotBeRemediated"},
			word:       "rollout of MachineDeployment workers",
		},
		"a Machine to be skipped": {machines: []*clusterv1.Machine{sick("a", 1, annotated(clusterv1.MachineSkipRemediationAnnotation))}},
		"a Machine that is well again": {
			machines: []*clusterv1.Machine{makeMachine("a", 1, passedCheck, owner("RemediationDeferred"))},
			want:     []string{"a: -"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := makePlan(snapshot{set: makeSet(ptr.To[int32](3)), deployment: tc.deployment, blocked: tc.blocked, machines: tc.machines})
			var got []string
			told := ""
			for _, todo := range p.remediate {
				line := todo.machine.Name + ": -"
				if todo.tell != nil {
					line = todo.machine.Name + ": " + todo.tell.Reason
					told += todo.tell.Message
				}
				if todo.remove {
					line = "delete " + line
				}
				got = append(got, line)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("remediations (-want +got):\n%s", diff)
			}
			if !strings.Contains(told, tc.word) {
				t.Errorf("told %q, want it to say %q", told, tc.word)
			}
		})
	}
}

func TestAMachineIsNotDeletedTwiceForSurplusAndForItsHealth(t *testing.T) {
	set := makeSet(ptr.To[int32](1))
	p := makePlan(snapshot{set: set, machines: []*clusterv1.Machine{makeMachine("well", 1), makeMachine("sick", 2, failedCheck, asked, unhealthy)}})
	if diff := cmp.Diff([]string{"sick"}, names(p.remove)); diff != "" || len(p.remediate) > 0 {
		t.Errorf("remediations %v, removed (-want +got):\n%s", p.remediate, diff)
	}
	set.DeletionTimestamp = ptr.To(metav1.NewTime(epoch))
	if p := makePlan(snapshot{set: set, machines: []*clusterv1.Machine{makeMachine("sick", 2, failedCheck, asked)}}); len(p.remediate) > 0 {
		t.Errorf("a set that is being deleted remediates: %v", p.remediate)
	}
}

// TestRemediationsInFlightStayBelowTheLimit plays plans out on random sets, with deletions that take their time.
func TestRemediationsInFlightStayBelowTheLimit(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for round := range 300 {
		limit := int32(random.IntN(4))
		deployment := makeDeployment(ptr.To(intstr.FromInt32(limit)))
		var machines []*clusterv1.Machine
		for i := range 10 {
			machine := makeMachine(fmt.Sprintf("m%d", i), i)
			if random.IntN(2) == 0 {
				failedCheck(machine)
				asked(machine)
			}
			machines = append(machines, machine)
		}
		for range 40 {
			for _, todo := range makePlan(snapshot{set: makeSet(ptr.To[int32](10)), deployment: deployment, machines: machines}).remediate {
				conditions.Set(todo.machine, *todo.tell)
				if todo.remove {
					beingDeleted(todo.machine)
				}
			}
			var inFlight, waiting int32
			var left []*clusterv1.Machine
			for _, machine := range machines {
				switch gone := !machine.DeletionTimestamp.IsZero() && random.IntN(3) == 0; {
				case gone:
					continue
				case !machine.DeletionTimestamp.IsZero():
					inFlight++
				case conditions.IsFalse(machine, clusterv1.MachineHealthCheckSucceededCondition):
					waiting++
				}
				left = append(left, machine)
			}
			if inFlight > limit {
				t.Fatalf("round %d: %d remediations in flight, the limit is %d", round, inFlight, limit)
			}
			machines = left
			if waiting == 0 && inFlight == 0 {
				break
			}
		}
		for _, machine := range machines {
			if limit > 0 && conditions.IsFalse(machine, clusterv1.MachineHealthCheckSucceededCondition) {
				t.Fatalf("round %d: %s was never remediated, the limit is %d", round, machine.Name, limit)
			}
		}
	}
}
