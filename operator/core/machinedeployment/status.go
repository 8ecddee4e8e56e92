package machinedeployment

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/lifecycle"
)

// observation is what a reconcile knows at its end.
type observation struct {
	sets     []*clusterv1.MachineSet
	machines []*clusterv1.Machine
	// failed says why a MachineSet could not be written.
	failed error
	// unset says why spec.replicas could not be defaulted.
	unset error
	now   time.Time
}

// setStatus writes the counters, phase and conditions of a deployment from what was seen.
func setStatus(deployment *clusterv1.MachineDeployment, o observation) {
	status := &deployment.Status
	status.ObservedGeneration = deployment.Generation
	status.Replicas = ptr.To(int32(len(o.machines)))
	status.ReadyReplicas = lifecycle.CountTrue(o.machines, clusterv1.MachineReadyCondition)
	status.AvailableReplicas = lifecycle.CountTrue(o.machines, clusterv1.MachineAvailableCondition)
	old, _ := o.outOfDate(deployment)
	status.UpToDateReplicas = ptr.To(int32(len(o.machines) - old))
	status.Versions = lifecycle.CountVersions(o.machines)
	if selector, err := metav1.LabelSelectorAsSelector(&deployment.Spec.Selector); err == nil {
		status.Selector = selector.String()
	}

	have, want := len(o.machines), int(ptr.Deref(deployment.Spec.Replicas, 0))
	deleting := conditions.False(clusterv1.MachineDeploymentDeletingCondition, clusterv1.MachineDeploymentNotDeletingReason, "")
	if !deployment.DeletionTimestamp.IsZero() {
		want = 0
		deleting = conditions.True(clusterv1.MachineDeploymentDeletingCondition, clusterv1.MachineDeploymentDeletingReason, "%s", lifecycle.WaitingForMachines(o.machines))
	}
	status.SetTypedPhase(phase(have, want, int(*status.ReadyReplicas)))

	scalingUp, scalingDown := lifecycle.ScalingUp(have, want, blocked(deployment, o)), lifecycle.ScalingDown(have, want)
	if o.unset != nil {
		scalingUp = lifecycle.ReplicasUnset(clusterv1.MachineDeploymentScalingUpCondition, o.unset)
		scalingDown = lifecycle.ReplicasUnset(clusterv1.MachineDeploymentScalingDownCondition, o.unset)
	}
	for _, condition := range []metav1.Condition{
		available(deployment, o),
		lifecycle.MachinesReady(o.machines),
		lifecycle.MachinesUpToDate(o.machines),
		rollingOut(deployment, o),
		lifecycle.ContentChangedIn(o.sets),
		scalingUp,
		scalingDown,
		lifecycle.Remediating(o.machines),
		deleting,
	} {
		conditions.Set(deployment, condition)
	}
}

func phase(have, want, ready int) clusterv1.MachineDeploymentPhase {
	switch {
	case have > want:
		return clusterv1.MachineDeploymentPhaseScalingDown
	case ready < want:
		return clusterv1.MachineDeploymentPhaseScalingUp
	}
	return clusterv1.MachineDeploymentPhaseRunning
}

// blocked collects what keeps sets from creating Machines, each cause once.
func blocked(deployment *clusterv1.MachineDeployment, o observation) []string {
	var causes []string
	if o.failed != nil {
		causes = append(causes, o.failed.Error())
	}
	if paused(deployment) && len(o.sets) == 0 {
		causes = append(causes, "spec.paused is true, and there is no MachineSet yet: resume the rollout")
	}
	if !selectsItsMachines(deployment) {
		causes = append(causes, "spec.selector does not match spec.template.metadata.labels: change the labels so that it does")
	}
	for _, set := range o.sets {
		// A set that is not to create any is blocked by us.
		if _, disabled := set.Annotations[clusterv1.DisableMachineCreateAnnotation]; disabled {
			continue
		}
		for _, cause := range lifecycle.Blocked(conditions.Get(set, clusterv1.MachineSetScalingUpCondition)) {
			if !slices.Contains(causes, cause) {
				causes = append(causes, cause)
			}
		}
	}
	return causes
}

func available(deployment *clusterv1.MachineDeployment, o observation) metav1.Condition {
	const condition = clusterv1.MachineDeploymentAvailableCondition
	if o.unset != nil {
		return lifecycle.ReplicasUnset(condition, o.unset)
	}
	if !deployment.DeletionTimestamp.IsZero() {
		return conditions.False(condition, clusterv1.MachineDeploymentNotAvailableReason, "Being deleted")
	}
	want := *deployment.Spec.Replicas
	unavailable := lifecycle.RolloutBounds(deployment.Spec.Rollout.Strategy, want).Unavailable
	have, needed := *deployment.Status.AvailableReplicas, max(want-unavailable, 0)
	if have >= needed {
		return conditions.True(condition, clusterv1.MachineDeploymentAvailableReason, "")
	}
	return conditions.False(condition, clusterv1.MachineDeploymentNotAvailableReason,
		"%d available replicas, at least %d required (spec.replicas %d, maxUnavailable %d)", have, needed, want, unavailable)
}

// outOfDate counts the Machines to be replaced and returns why, each cause once. It asks their sets: the condition
// UpToDate of the Machines follows a change of the template a moment later, and until then nothing would seem to be
// under way.
func (o observation) outOfDate(deployment *clusterv1.MachineDeployment) (count int, causes []string) {
	for _, set := range o.sets {
		lines := lifecycle.OutOfDate(set, deployment, o.now)
		mine := 0
		for _, machine := range o.machines {
			if metav1.IsControlledBy(machine, set) {
				mine++
			}
		}
		if len(lines) == 0 || mine == 0 {
			continue
		}
		count += mine
		for _, line := range lines {
			if line = "* " + line; !slices.Contains(causes, line) {
				causes = append(causes, line)
			}
		}
	}
	slices.Sort(causes)
	return count, causes
}

// rollingOut tells how many Machines are to be replaced and why, and what the rollout waits for that only a user or the
// clock can give.
func rollingOut(deployment *clusterv1.MachineDeployment, o observation) metav1.Condition {
	const condition = clusterv1.MachineDeploymentRollingOutCondition
	count, causes := o.outOfDate(deployment)
	if count == 0 {
		if after := deployment.Spec.Rollout.After.Time; o.now.Before(after) {
			return conditions.False(condition, clusterv1.MachineDeploymentNotRollingOutReason, "A rollout begins at %s: spec.rollout.after", after.UTC().Format(time.RFC3339))
		}
		return conditions.False(condition, clusterv1.MachineDeploymentNotRollingOutReason, "")
	}
	if err := lifecycle.CheckRolloutBounds(deployment.Spec.Rollout.Strategy); err != nil {
		causes = append(causes, "* "+err.Error())
	}
	switch {
	case paused(deployment):
		causes = append(causes, "* Paused: spec.paused is true")
	case onDelete(deployment):
		causes = append(causes, "* Each is replaced when somebody deletes it: spec.rollout.strategy.type is OnDelete")
	}
	return conditions.True(condition, clusterv1.MachineDeploymentRollingOutReason, "%d replicas are not up to date\n%s", count, strings.Join(causes, "\n"))
}
