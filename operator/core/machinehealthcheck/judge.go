package machinehealthcheck

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/conditions"
)

// settleTime is how long after a connection came up a Machine without a Node is not blamed: its Node may be there, and
// the Machine has just had no chance to find it.
const settleTime = 30 * time.Second

// health is what a check thinks of a Machine.
type health string

const (
	healthy health = "healthy"
	failed  health = "failed"
	// undecided is a Machine that is starting, or ailing for less than its timeout, or that cannot be seen.
	undecided health = "undecided"
)

// opinion is what a check thinks of one Machine.
type opinion struct {
	health health
	// reason and message go into the condition HealthCheckSucceeded of a Machine that failed.
	reason, message string
	// next is when the Machine fails if nothing happens; zero for never.
	next time.Time
}

// judge looks at one Machine. The order is upstream's: what a user asks for, then what is known of the Machine whatever
// its cluster does, then, in a cluster that works, its conditions and its Node.
func judge(s snapshot, t target) opinion {
	machine := t.machine
	if !machine.DeletionTimestamp.IsZero() {
		return opinion{health: undecided}
	}
	if _, asked := machine.Annotations[clusterv1.RemediateMachineAnnotation]; asked {
		return fail(clusterv1.MachineHealthCheckHasRemediateAnnotationReason,
			fmt.Sprintf("Annotation %s asks for remediation", clusterv1.RemediateMachineAnnotation))
	}
	//lint:ignore SA1019 Only providers of the older contract report failures, and for them the phase is kept.
	if machine.Status.GetTypedPhase() == clusterv1.MachinePhaseFailed {
		return fail(clusterv1.MachineHealthCheckUnhealthyMachineReason, "The Machine's phase is Failed: its provider gave it up")
	}
	if !isRunning(s.cluster, machine) {
		return asBefore(machine)
	}

	ofMachine := judgeMachineConditions(s, machine)
	ofNode := judgeNode(s, t)
	causes := append(ofNode.causes, ofMachine.causes...)
	next := soonest(ofNode.next, ofMachine.next)
	switch {
	case len(ofMachine.causes) > 0:
		return fail(clusterv1.MachineHealthCheckUnhealthyMachineReason, causes...)
	case len(ofNode.causes) > 0:
		return fail(ofNode.reason, causes...)
	case !next.IsZero():
		return opinion{health: undecided, next: next}
	case ofNode.unknown:
		return asBefore(machine)
	case t.node == nil:
		return opinion{health: undecided}
	}
	return opinion{health: healthy}
}

func fail(reason string, causes ...string) opinion {
	return opinion{health: failed, reason: reason, message: strings.Join(causes, "; ")}
}

// asBefore keeps a Machine healthy that was when it could last be judged. One that was not is not remediated anew.
func asBefore(machine *clusterv1.Machine) opinion {
	if conditions.IsTrue(machine, clusterv1.MachineHealthCheckSucceededCondition) {
		return opinion{health: healthy}
	}
	return opinion{health: undecided}
}

// isRunning tells whether a Machine can be expected to have a Node that is well. The first control-plane machine can: on
// it depends whether the control plane is ever initialized.
func isRunning(cluster *clusterv1.Cluster, machine *clusterv1.Machine) bool {
	_, controlPlane := machine.Labels[clusterv1.MachineControlPlaneLabel]
	return conditions.IsTrue(cluster, clusterv1.ClusterInfrastructureReadyCondition) && (controlPlane || isInitialized(cluster))
}

func isInitialized(cluster *clusterv1.Cluster) bool {
	return conditions.IsTrue(cluster, clusterv1.ClusterControlPlaneInitializedCondition)
}

// finding is what one group of checks found.
type finding struct {
	// reason belongs to the first cause.
	reason string
	causes []string
	next   time.Time
	// unknown is set when there was nothing to look at.
	unknown bool
}

func judgeMachineConditions(s snapshot, machine *clusterv1.Machine) finding {
	var f finding
	for _, unwanted := range s.check.Spec.Checks.UnhealthyMachineConditions {
		have := conditions.Get(machine, unwanted.Type)
		if have == nil || have.Status != unwanted.Status || tellsOfUnseenNode(s, have) {
			continue
		}
		f.count(s.now, have.LastTransitionTime.Time, unwanted.TimeoutSeconds, fmt.Sprintf("Condition %s is %s", have.Type, have.Status))
	}
	return f
}

// tellsOfUnseenNode tells whether a condition of a Machine speaks of its Node at a time when that could not be seen. A
// cluster that does not answer would otherwise lose all its Machines, the moment that it answers again included.
func tellsOfUnseenNode(s snapshot, have *metav1.Condition) bool {
	if have.Type != clusterv1.MachineNodeHealthyCondition && have.Type != clusterv1.MachineNodeReadyCondition {
		return false
	}
	return have.Reason == clusterv1.MachineNodeConnectionDownReason || (isInitialized(s.cluster) && s.connectedSince.IsZero())
}

func judgeNode(s snapshot, t target) finding {
	name := t.machine.Status.NodeRef.Name
	switch {
	case t.node != nil:
		return judgeNodeConditions(s, t.node)
	case name != "" && !s.connectedSince.IsZero():
		return finding{reason: clusterv1.MachineHealthCheckNodeDeletedReason, causes: []string{fmt.Sprintf("Node %s has been deleted", name)}}
	case name != "", isInitialized(s.cluster) && s.connectedSince.IsZero():
		return finding{unknown: true}
	}
	return judgeStartup(s, t.machine)
}

func judgeNodeConditions(s snapshot, node *corev1.Node) finding {
	f := finding{reason: clusterv1.MachineHealthCheckUnhealthyNodeReason}
	for _, unwanted := range s.check.Spec.Checks.UnhealthyNodeConditions {
		for _, have := range node.Status.Conditions {
			if have.Type == unwanted.Type && have.Status == unwanted.Status {
				f.count(s.now, have.LastTransitionTime.Time, unwanted.TimeoutSeconds, fmt.Sprintf("Condition %s of Node %s is %s", have.Type, node.Name, have.Status))
			}
		}
	}
	return f
}

// count takes in a condition that has had an unwanted status since some time.
func (f *finding) count(now, since time.Time, timeoutSeconds *int32, what string) {
	timeout := seconds(timeoutSeconds)
	if deadline := since.Add(timeout); now.Before(deadline) {
		f.next = soonest(f.next, deadline)
		return
	}
	f.causes = append(f.causes, fmt.Sprintf("%s since %s, for longer than %s", what, stamp(since), timeout))
}

// judgeStartup looks at a Machine that has never had a Node. The time counts from when everything that a Node needs was
// there (MachineHealthCheckChecks.NodeStartupTimeoutSeconds documents which).
func judgeStartup(s snapshot, machine *clusterv1.Machine) finding {
	timeout := seconds(s.check.Spec.Checks.NodeStartupTimeoutSeconds)
	if timeout == 0 {
		return finding{}
	}
	since := latest(machine.CreationTimestamp.Time,
		becameTrue(s.cluster, clusterv1.ClusterInfrastructureReadyCondition),
		becameTrue(s.cluster, clusterv1.ClusterControlPlaneInitializedCondition),
		becameTrue(machine, clusterv1.MachineInfrastructureReadyCondition))
	deadline := since.Add(timeout)
	if !s.connectedSince.IsZero() {
		deadline = latest(deadline, s.connectedSince.Add(settleTime))
	}
	if s.now.Before(deadline) {
		return finding{next: deadline}
	}
	return finding{
		reason: clusterv1.MachineHealthCheckNodeStartupTimeoutReason,
		causes: []string{fmt.Sprintf("No Node has appeared since %s, for longer than %s", stamp(since), timeout)},
	}
}

// becameTrue returns when a condition became True, zero when it is not.
func becameTrue(obj conditions.Getter, conditionType string) time.Time {
	if c := conditions.Get(obj, conditionType); c != nil && c.Status == metav1.ConditionTrue {
		return c.LastTransitionTime.Time
	}
	return time.Time{}
}

func latest(first time.Time, others ...time.Time) time.Time {
	for _, t := range others {
		if t.After(first) {
			first = t
		}
	}
	return first
}

func seconds(n *int32) time.Duration {
	return time.Duration(ptr.Deref(n, 0)) * time.Second
}

// stamp writes a time into a message.
func stamp(t time.Time) string {
	return t.UTC().Format(time.RFC3339)
}
