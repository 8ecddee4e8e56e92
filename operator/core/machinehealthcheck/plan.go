package machinehealthcheck

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/conditions"
)

// snapshot is what the verdicts about the Machines of one check are taken from.
type snapshot struct {
	now     time.Time
	check   *clusterv1.MachineHealthCheck
	cluster *clusterv1.Cluster
	targets []target
	// taken are the names of Machines that the check selects and leaves to an older one, by the name of that.
	taken map[string][]string
	// connectedSince is when the connection to the workload cluster came up; zero while that does not answer.
	connectedSince time.Time
}

// target is a Machine that the check looks after. Both objects belong to caches: they are not to be changed.
type target struct {
	machine *clusterv1.Machine
	// node is nil while the Machine has none, when it is gone, and when nobody can tell.
	node *corev1.Node
}

// plan is what the check says and wants done.
type plan struct {
	// verdicts are sorted by the Machines' names.
	verdicts []verdict
	healthy  int
	// allowed is the condition RemediationAllowed; remaining is how many Machines more could fail before it is False.
	allowed   metav1.Condition
	remaining int
	// leftOut tells which Machines are left to other checks; empty when there are none.
	leftOut string
	// next is when the plan changes though nothing happens; zero for never.
	next time.Time
}

// verdict is what is said about one Machine, and what follows from it.
type verdict struct {
	target
	opinion
	remedy remedy
}

// remedy is what is done about a Machine.
type remedy string

const (
	// keep leaves to the Machine's owner, or to an external remediation, what they have been asked for.
	keep remedy = ""
	// ask asks for the Machine's remediation.
	ask remedy = "ask"
	// withdraw takes back what nobody has begun to do.
	withdraw remedy = "withdraw"
)

// isTarget tells whether a check looks after a Machine that it selects. One that is being deleted since it failed its
// check counts until it is gone: what is being remediated must not make room for more.
func isTarget(machine *clusterv1.Machine) bool {
	_, skip := machine.Annotations[clusterv1.MachineSkipRemediationAnnotation]
	_, paused := machine.Annotations[clusterv1.PausedAnnotation]
	if skip || paused {
		return false
	}
	return machine.DeletionTimestamp.IsZero() || conditions.IsFalse(machine, clusterv1.MachineHealthCheckSucceededCondition)
}

// makePlan judges every target, counts, and decides whether those that failed are remediated: all of them or, with too
// many that are not healthy, none. A Machine that has not started yet is not healthy, as upstream counts.
func makePlan(s snapshot) plan {
	var p plan
	var sick []string
	for _, t := range s.targets {
		v := verdict{target: t, opinion: judge(s, t)}
		p.verdicts = append(p.verdicts, v)
		p.next = soonest(p.next, v.next)
		if v.health == healthy {
			p.healthy++
		} else {
			sick = append(sick, t.machine.Name)
		}
	}
	slices.SortFunc(p.verdicts, func(a, b verdict) int { return cmp.Compare(a.machine.Name, b.machine.Name) })
	p.allowed, p.remaining = permission(s.check, len(s.targets), sick)
	p.leftOut = leftToOthers(s.taken)
	if p.leftOut != "" {
		p.allowed.Message = strings.TrimPrefix(p.allowed.Message+"; "+p.leftOut, "; ")
	}
	for i := range p.verdicts {
		p.verdicts[i].remedy = remedyFor(p.verdicts[i], p.allowed.Status == metav1.ConditionTrue)
	}
	return p
}

// remedyFor decides on one Machine. Where its health is not known, what was asked before stands.
func remedyFor(v verdict, allowed bool) remedy {
	switch {
	case !v.machine.DeletionTimestamp.IsZero():
		return keep
	case !allowed, v.health == healthy:
		return withdraw
	case v.health == failed:
		return ask
	}
	return keep
}

// soonest returns the earlier of two times, where zero means never.
func soonest(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}
