package machinehealthcheck

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/conditions"
)

func atMost(value intstr.IntOrString) func(*clusterv1.MachineHealthCheck) {
	return func(check *clusterv1.MachineHealthCheck) {
		check.Spec.Remediation.TriggerIf.UnhealthyLessThanOrEqualTo = &value
	}
}

func inRange(text string) func(*clusterv1.MachineHealthCheck) {
	return func(check *clusterv1.MachineHealthCheck) { check.Spec.Remediation.TriggerIf.UnhealthyInRange = text }
}

func makeSnapshot(check *clusterv1.MachineHealthCheck, targets ...target) snapshot {
	return snapshot{now: now, check: check, cluster: makeCluster(), connectedSince: epoch, targets: targets}
}

func well(name string) target {
	return target{machine: makeMachine(name), node: makeNode(name, corev1.ConditionTrue, ago(time.Hour))}
}

func ill(name string) target {
	return target{machine: makeMachine(name), node: makeNode(name, corev1.ConditionUnknown, ago(time.Hour))}
}

func starting(name string) target {
	return target{machine: makeMachine(name, withoutNode, func(m *clusterv1.Machine) { m.CreationTimestamp = ago(time.Minute) })}
}

// going is a Machine that is being deleted because it failed.
func going(name string) target {
	return target{machine: makeMachine(name, func(m *clusterv1.Machine) { m.DeletionTimestamp = ptr.To(ago(time.Minute)) },
		has(condition(clusterv1.MachineHealthCheckSucceededCondition, metav1.ConditionFalse, ago(time.Minute))))}
}

func TestMachinesAreRemediatedUpToTheLimit(t *testing.T) {
	type outcome struct {
		Asked              []string
		Healthy, Remaining int
		Allowed            string
	}
	const yes = "True RemediationAllowed"
	const no = "False TooManyUnhealthy"
	cases := map[string]struct {
		check   *clusterv1.MachineHealthCheck
		targets []target
		want    outcome
		words   []string
	}{
		"no Machines": {check: makeCheck(), want: outcome{Allowed: yes}},
		"by default all of them": {
			check: makeCheck(), targets: []target{ill("b"), ill("a")},
			want: outcome{Asked: []string{"a", "b"}, Allowed: yes},
		},
		"one of three": {
			check: makeCheck(atMost(intstr.FromInt32(1))), targets: []target{well("a"), ill("b"), well("c")},
			want: outcome{Asked: []string{"b"}, Healthy: 2, Allowed: yes},
		},
		"none of two when one is the limit": {
			check: makeCheck(atMost(intstr.FromInt32(1))), targets: []target{well("a"), ill("b"), ill("c")},
			want:  outcome{Healthy: 1, Allowed: no},
			words: []string{"2 of 3 Machines are not healthy (b, c)", "unhealthyLessThanOrEqualTo is 1:", "no Machine is remediated"},
		},
		"a percentage rounds down": {
			check: makeCheck(atMost(intstr.FromString("40%"))), targets: []target{well("a"), well("b"), ill("c"), ill("d")},
			want:  outcome{Healthy: 2, Allowed: no},
			words: []string{"is 40%, which is 1"},
		},
		"a percentage that is enough": {
			check: makeCheck(atMost(intstr.FromString("40%"))), targets: []target{well("a"), well("b"), well("c"), ill("d"), well("e")},
			want: outcome{Asked: []string{"d"}, Healthy: 4, Remaining: 1, Allowed: yes},
		},
		"a Machine that starts is not healthy": {
			check: makeCheck(atMost(intstr.FromInt32(1))), targets: []target{well("a"), ill("b"), starting("c")},
			want: outcome{Healthy: 1, Allowed: no},
		},
		"a Machine that is being remediated still counts": {
			check: makeCheck(atMost(intstr.FromInt32(1))), targets: []target{well("a"), ill("b"), going("c")},
			want: outcome{Healthy: 1, Allowed: no},
		},
		"a limit of zero stops remediation": {
			check: makeCheck(atMost(intstr.FromInt32(0))), targets: []target{ill("a")},
			want: outcome{Allowed: no},
		},
		"inside a range, which wins over the number": {
			check: makeCheck(atMost(intstr.FromInt32(0)), inRange("[1-3]")), targets: []target{ill("a"), ill("b"), well("c")},
			want: outcome{Asked: []string{"a", "b"}, Healthy: 1, Remaining: 1, Allowed: yes},
		},
		"below a range": {
			check: makeCheck(inRange("[2-3]")), targets: []target{ill("a"), well("b")},
			want:  outcome{Healthy: 1, Allowed: no},
			words: []string{"1 of 2 Machines are not healthy (a)", "unhealthyInRange is [2-3]"},
		},
		"above a range": {
			check: makeCheck(inRange("[1-1]")), targets: []target{ill("a"), ill("b")},
			want: outcome{Allowed: no},
		},
		"a range that begins with its end": {
			check: makeCheck(inRange("[3-1]")), targets: []target{ill("a")},
			want: outcome{Allowed: "False InvalidSpec"}, words: []string{`unhealthyInRange is "[3-1]"`},
		},
		"a word as the limit": {
			check: makeCheck(atMost(intstr.FromString("few"))), targets: []target{ill("a")},
			want: outcome{Allowed: "False InvalidSpec"}, words: []string{`"few"`, "percentage"},
		},
		"a selector of everything": {
			check: makeCheck(func(c *clusterv1.MachineHealthCheck) { c.Spec.Selector = metav1.LabelSelector{} }),
			want:  outcome{Allowed: "False InvalidSpec"}, words: []string{"spec.selector is empty"},
		},
		"many names are cut short": {
			check: makeCheck(atMost(intstr.FromInt32(1))), targets: []target{ill("a"), ill("b"), ill("c"), ill("d"), ill("e"), ill("f"), ill("g")},
			want: outcome{Allowed: no}, words: []string{"(a, b, c, d, e, ... 2 more)"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := makePlan(makeSnapshot(tc.check, tc.targets...))
			got := outcome{Healthy: p.healthy, Remaining: p.remaining, Allowed: fmt.Sprint(p.allowed.Status, " ", p.allowed.Reason)}
			for _, v := range p.verdicts {
				if v.remedy == ask {
					got.Asked = append(got.Asked, v.machine.Name)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
			for _, words := range tc.words {
				if !strings.Contains(p.allowed.Message, words) {
					t.Errorf("message %q does not say %q", p.allowed.Message, words)
				}
			}
		})
	}
}

func TestThePlanIsLookedAtAgainAtItsFirstDeadline(t *testing.T) {
	ailing := target{machine: makeMachine("a"), node: makeNode("a", corev1.ConditionFalse, ago(2*time.Minute))}
	p := makePlan(makeSnapshot(makeCheck(), well("c"), starting("b"), ailing, ill("d")))
	if got := p.next.Sub(now); got != 3*time.Minute {
		t.Errorf("next look in %s, want 3m", got)
	}
	if p := makePlan(makeSnapshot(makeCheck(), well("a"), ill("b"))); !p.next.IsZero() {
		t.Errorf("next look at %s, want none: nothing changes by itself", p.next)
	}
}

func TestSomeMachinesAreNoTargets(t *testing.T) {
	deleted := func(m *clusterv1.Machine) { m.DeletionTimestamp = ptr.To(ago(time.Minute)) }
	cases := map[string]struct {
		machine *clusterv1.Machine
		want    bool
	}{
		"a Machine": {makeMachine("m"), true},
		"one to be skipped, though it is asked for": {makeMachine("m", func(m *clusterv1.Machine) {
			m.Annotations = map[string]string{clusterv1.MachineSkipRemediationAnnotation: "", clusterv1.RemediateMachineAnnotation: ""}
		}), false},
		"a paused one":                            {makeMachine("m", annotated(clusterv1.PausedAnnotation)), false},
		"one being deleted":                       {makeMachine("m", deleted), false},
		"one being deleted since it failed":       {going("m").machine, true},
		"one to be remediated":                    {makeMachine("m", annotated(clusterv1.RemediateMachineAnnotation)), true},
		"one being deleted that has been healthy": {makeMachine("m", deleted, has(condition(clusterv1.MachineHealthCheckSucceededCondition, metav1.ConditionTrue, ago(0)))), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := isTarget(tc.machine); got != tc.want {
				t.Errorf("is a target: %t, want %t", got, tc.want)
			}
		})
	}
}

// TestNoPlanRemediatesMoreThanIsAllowed tries random fleets: never more Machines than the limit, counting what is under
// way; never one that is well, that cannot be seen or that is being deleted; and never some of those that failed.
func TestNoPlanRemediatesMoreThanIsAllowed(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 5000 {
		var limits func(*clusterv1.MachineHealthCheck)
		low, high := 0, random.IntN(8)
		switch random.IntN(3) {
		case 0:
			limits = atMost(intstr.FromInt32(int32(high)))
		case 1:
			low = random.IntN(high + 1)
			limits = inRange(fmt.Sprintf("[%d-%d]", low, high))
		}
		count := random.IntN(12)
		if limits == nil {
			percent := random.IntN(101)
			limits = atMost(intstr.FromString(fmt.Sprintf("%d%%", percent)))
			high = percent * count / 100
		}
		kinds := []func(string) target{well, ill, starting, going}
		var targets []target
		for i := range count {
			targets = append(targets, kinds[random.IntN(len(kinds))](fmt.Sprintf("m%d", i)))
		}
		s := makeSnapshot(makeCheck(limits), targets...)
		if random.IntN(4) == 0 {
			s.connectedSince = time.Time{}
			for i := range s.targets {
				s.targets[i].node = nil
			}
		}

		p := makePlan(s)
		asked, failures, underWay := 0, 0, 0
		for _, v := range p.verdicts {
			if !v.machine.DeletionTimestamp.IsZero() {
				underWay++
			}
			if v.health == failed {
				failures++
			}
			if v.remedy != ask {
				continue
			}
			asked++
			if v.health != failed || !v.machine.DeletionTimestamp.IsZero() || s.connectedSince.IsZero() {
				t.Fatalf("round %d: %s is remediated, judged %s", round, v.machine.Name, v.health)
			}
		}
		sick := len(targets) - p.healthy
		switch {
		case asked+underWay > high && asked > 0:
			t.Fatalf("round %d: %d remediated and %d under way, the limit is %d", round, asked, underWay, high)
		case asked > 0 && (sick < low || sick > high):
			t.Fatalf("round %d: %d remediated while %d are not healthy, allowed is %d to %d", round, asked, sick, low, high)
		case sick >= low && sick <= high && asked != failures:
			t.Fatalf("round %d: %d of %d failed Machines remediated, though allowed", round, asked, failures)
		case p.remaining < 0 || p.remaining > high:
			t.Fatalf("round %d: %d further remediations allowed of %d", round, p.remaining, high)
		}
	}
}

func TestWhatTheOwnerHasBegunIsNotTakenBack(t *testing.T) {
	owner := func(status metav1.ConditionStatus, reason string) *metav1.Condition {
		return &metav1.Condition{Type: clusterv1.MachineOwnerRemediatedCondition, Status: status, Reason: reason, LastTransitionTime: ago(time.Minute)}
	}
	cases := map[string]struct {
		have *metav1.Condition
		todo remedy
		want string
	}{
		"asked for the first time":                          {nil, ask, "WaitingForRemediation"},
		"asked again after a remediation":                   {owner(metav1.ConditionTrue, "Remediated"), ask, "WaitingForRemediation"},
		"asked for while the owner is at it":                {owner(metav1.ConditionFalse, "MachineDeleting"), ask, "MachineDeleting"},
		"asked for while the owner waits for others":        {owner(metav1.ConditionFalse, "RemediationDeferred"), ask, "RemediationDeferred"},
		"taken back before the owner looked":                {owner(metav1.ConditionFalse, "WaitingForRemediation"), withdraw, ""},
		"taken back while the owner waits for others":       {owner(metav1.ConditionFalse, "RemediationDeferred"), withdraw, ""},
		"not taken back from an owner that is at it":        {owner(metav1.ConditionFalse, "MachineDeleting"), withdraw, "MachineDeleting"},
		"left alone where nothing is known":                 {owner(metav1.ConditionFalse, "WaitingForRemediation"), keep, "WaitingForRemediation"},
		"nothing to take back":                              {nil, withdraw, ""},
		"a Machine that was remediated before stays marked": {owner(metav1.ConditionTrue, "Remediated"), withdraw, "Remediated"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			machine := makeMachine("m")
			if tc.have != nil {
				has(*tc.have)(machine)
			}
			setOwnerRemediated(machine, tc.todo)
			got := ""
			if c := conditions.Get(machine, clusterv1.MachineOwnerRemediatedCondition); c != nil {
				got = c.Reason
			}
			if got != tc.want {
				t.Errorf("OwnerRemediated has reason %q, want %q", got, tc.want)
			}
		})
	}
}
