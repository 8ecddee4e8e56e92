package machineset

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/patch"
)

// remediation is what is done about one Machine that failed its health check, or that is well again.
type remediation struct {
	machine *clusterv1.Machine
	// tell is what OwnerRemediated is to say; nil removes the condition.
	tell *metav1.Condition
	// remove is set when the Machine is to be deleted, once that is told.
	remove bool
}

// planRemediation decides which of the Machines that a health check wants replaced are deleted now. Their number is
// bounded by the deployment's maxInFlight; the others are told what they wait for. Machines in removed go anyway.
func planRemediation(s snapshot, removed []*clusterv1.Machine) []remediation {
	var out []remediation
	var sick []*clusterv1.Machine
	inFlight := 0
	for _, machine := range s.machines {
		switch {
		case !conditions.IsFalse(machine, clusterv1.MachineOwnerRemediatedCondition):
		case !machine.DeletionTimestamp.IsZero():
			if conditions.Get(machine, clusterv1.MachineOwnerRemediatedCondition).Reason == clusterv1.MachineSetMachineRemediationMachineDeletingReason {
				inFlight++
			}
		case conditions.IsTrue(machine, clusterv1.MachineHealthCheckSucceededCondition):
			out = append(out, remediation{machine: machine})
		case wantsRemediation(machine) && !slices.Contains(removed, machine):
			sick = append(sick, machine)
		}
	}
	slices.SortFunc(sick, remediationOrder)

	allowed, waiting := remediationsAllowed(s, inFlight)
	for i, machine := range sick {
		tell := waiting
		if i < allowed {
			tell = conditions.False(clusterv1.MachineOwnerRemediatedCondition, clusterv1.MachineSetMachineRemediationMachineDeletingReason,
				"Machine is being deleted; another takes its place when it is gone")
		}
		out = append(out, remediation{machine: machine, tell: &tell, remove: i < allowed})
	}
	return out
}

// wantsRemediation tells whether a health check asked for a Machine's replacement, and nobody has objected since.
func wantsRemediation(machine *clusterv1.Machine) bool {
	_, skip := machine.Annotations[clusterv1.MachineSkipRemediationAnnotation]
	return !skip && conditions.IsFalse(machine, clusterv1.MachineHealthCheckSucceededCondition)
}

// remediationOrder compares two Machines: the one to be remediated first is less. Those that a user asks for come first,
// then the newest, which are the least likely to run something.
func remediationOrder(a, b *clusterv1.Machine) int {
	rank := func(machine *clusterv1.Machine) int {
		if _, asked := machine.Annotations[clusterv1.RemediateMachineAnnotation]; asked {
			return 0
		}
		return 1
	}
	return cmp.Or(
		cmp.Compare(rank(a), rank(b)),
		b.CreationTimestamp.Compare(a.CreationTimestamp.Time),
		cmp.Compare(a.Name, b.Name),
	)
}

// remediationsAllowed returns how many Machines more may be remediated now, and what to tell the others.
func remediationsAllowed(s snapshot, inFlight int) (int, metav1.Condition) {
	deferred := func(format string, args ...any) metav1.Condition {
		return conditions.False(clusterv1.MachineOwnerRemediatedCondition, clusterv1.MachineSetMachineRemediationDeferredReason, format, args...)
	}
	if deployment := s.deployment; deployment != nil && deployment.Annotations[clusterv1.RevisionAnnotation] != s.set.Annotations[clusterv1.RevisionAnnotation] {
		return 0, conditions.False(clusterv1.MachineOwnerRemediatedCondition, clusterv1.MachineSetMachineCannotBeRemediatedReason,
			"The rollout of MachineDeployment %s removes this Machine, with all of its MachineSet", deployment.Name)
	}
	if len(s.blocked) > 0 {
		return 0, deferred("Nothing would take the place of this Machine:\n* %s", strings.Join(s.blocked, "\n* "))
	}
	if s.deployment == nil || s.deployment.Spec.Remediation.MaxInFlight == nil {
		return math.MaxInt, metav1.Condition{}
	}
	limit := s.deployment.Spec.Remediation.MaxInFlight
	most, err := intstr.GetScaledValueFromIntOrPercent(limit, int(ptr.Deref(s.deployment.Spec.Replicas, 1)), true)
	if err != nil {
		return 0, deferred(`spec.remediation.maxInFlight of MachineDeployment %s is %q: write a number or a percentage like "20%%"`, s.deployment.Name, limit.String())
	}
	return max(most-inFlight, 0), deferred("Waiting for other remediations: spec.remediation.maxInFlight of MachineDeployment %s is %s", s.deployment.Name, limit.String())
}

// remediate carries out what is planned about Machines that a health check looked at. What is told is stored before a
// Machine is deleted: it is by this that the next reconcile counts those that are on their way.
func (r *Reconciler) remediate(ctx context.Context, set *clusterv1.MachineSet, remediations []remediation) error {
	_, err := inBatches(remediations, func(todo remediation) (struct{}, error) {
		machine := todo.machine
		if err := tellOwnerRemediated(ctx, r.Client, machine, todo.tell); err != nil {
			return struct{}{}, client.IgnoreNotFound(err)
		}
		if !todo.remove {
			return struct{}{}, nil
		}
		if err := r.Client.Delete(ctx, machine, client.Preconditions{UID: &machine.UID}); client.IgnoreNotFound(err) != nil {
			return struct{}{}, fmt.Errorf("delete Machine %q, which failed its health check: %w", client.ObjectKeyFromObject(machine), err)
		}
		r.Recorder.Eventf(set, machine, corev1.EventTypeNormal, "Remediated", "Remediate", "Deleted Machine %q, which failed its health check", machine.Name)
		return struct{}{}, nil
	})
	return err
}

func tellOwnerRemediated(ctx context.Context, c client.Client, machine *clusterv1.Machine, tell *metav1.Condition) error {
	helper := patch.New(machine, c)
	have := conditions.Get(machine, clusterv1.MachineOwnerRemediatedCondition)
	switch {
	case tell == nil:
		conditions.Delete(machine, clusterv1.MachineOwnerRemediatedCondition)
	case have != nil && have.Status == tell.Status && have.Reason == tell.Reason && have.Message == tell.Message:
		return nil
	default:
		conditions.Set(machine, *tell)
	}
	return helper.Patch(ctx, machine)
}
