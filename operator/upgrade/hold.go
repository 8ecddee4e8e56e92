package upgrade

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	lifecyclev1 "github.com/millwright-dev/millwright/api/lifecycle/v1alpha1"
	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/lifecycle/upgrade"
)

// held tells whether no machine may be replaced now, and why.
func (s snapshot) held(running []upgrade.Step) (held bool, reason, message string) {
	switch {
	case ptr.Deref(s.upgrade.Spec.Paused, false):
		return true, lifecyclev1.PausedReason, fmt.Sprintf("paused: resume it with kubectl machines upgrade resume %s", s.objects.Cluster.Name)
	case len(running) == 0:
		return false, "", ""
	}
	if phase := phaseOf(running[0]); phase != "" && slices.Contains(s.upgrade.Spec.PauseBefore, phase) && !s.approved(phase) && !s.anyStarted(running) {
		return true, lifecyclev1.ApprovalNeededReason, fmt.Sprintf("%s waits for a person: approve it with kubectl annotate clusterupgrade %s %s=%s",
			stepTitle(running[0]), s.upgrade.Name, lifecyclev1.ApprovedAnnotation, phase)
	}
	if !s.opening.Open && running[0].Kind != upgrade.MoveAddon {
		when := "no maintenance window opens any more: mend spec.windows"
		if !s.opening.Changes.IsZero() {
			when = "the maintenance window opens at " + s.opening.Changes.Format(time.RFC3339)
		}
		return true, lifecyclev1.OutsideWindowReason, fmt.Sprintf("%s waits: %s", stepTitle(running[0]), when)
	}
	return false, "", ""
}

func phaseOf(step upgrade.Step) lifecyclev1.Phase {
	switch step.Kind {
	case upgrade.MoveControlPlane:
		return lifecyclev1.PhaseControlPlane
	case upgrade.MovePool:
		return lifecyclev1.PhaseWorkers
	}
	return ""
}

func (s snapshot) approved(phase lifecyclev1.Phase) bool {
	for _, name := range strings.Split(s.upgrade.Annotations[lifecyclev1.ApprovedAnnotation], ",") {
		if strings.EqualFold(strings.TrimSpace(name), string(phase)) {
			return true
		}
	}
	return false
}

func (s snapshot) anyStarted(steps []upgrade.Step) bool { return slices.ContainsFunc(steps, s.started) }

// hold stops the rollouts of the steps that have begun.
func (d *decision) hold(s snapshot, running []upgrade.Step) {
	for _, step := range running {
		o := s.object(step)
		if o != nil && s.started(step) && o.haltedBy() == "" && !s.pausedByOthers(*o) {
			d.halt = append(d.halt, o.name())
		}
	}
}

// pausedByOthers tells whether an object is paused already, which is then not ours to end.
func (s snapshot) pausedByOthers(o object) bool {
	if o.deployment != nil {
		return ptr.Deref(o.deployment.Spec.Paused, false)
	}
	_, paused := o.controlPlane.GetAnnotations()[clusterv1.PausedAnnotation]
	return paused
}

// goOn lets go on what this upgrade halted.
func (d *decision) goOn(s snapshot) {
	for _, o := range s.objectsToMove() {
		if o.haltedBy() == s.upgrade.Name {
			d.resume = append(d.resume, o.name())
		}
	}
}

// failure is a machine that does not become a Node, and the step that made it.
type failure struct {
	step    upgrade.Step
	message string
}

// failed finds the first step with a machine that is late.
func (s snapshot) failed(running []upgrade.Step) *failure {
	for _, step := range running {
		if !s.started(step) {
			continue
		}
		if step.Kind == upgrade.MoveAddon {
			if why := s.addonFailed(s.release(step.Name)); why != "" {
				return &failure{step, fmt.Sprintf("%s: %s; mend it, and the upgrade goes on, or abort it", stepTitle(step), why)}
			}
			continue
		}
		for _, m := range s.newMachines(step) {
			if becameReady(m) || s.now.Before(m.CreationTimestamp.Add(s.timeout())) {
				continue
			}
			return &failure{step, fmt.Sprintf("%s: machine %q is not ready %s after it was made: %s; mend it and delete the machine, change spec.images, or abort the upgrade",
				stepTitle(step), m.Name, s.timeout(), cause(m))}
		}
	}
	return nil
}

// fail pauses the upgrade, or takes the step back where the user wants that and there is a way back.
func (d *decision) fail(s snapshot, f failure) {
	d.mark(s, []upgrade.Step{f.step}, lifecyclev1.StepFailed, f.message)
	if s.upgrade.Spec.OnFailure == lifecyclev1.FailureRollBack && f.step.Kind == upgrade.MovePool {
		// Told first: when the machine is gone, nothing but the status knows why.
		d.tell(lifecyclev1.UpgradeAborting, lifecyclev1.StepFailedReason, f.message)
		return
	}
	d.tell(lifecyclev1.UpgradeFailed, lifecyclev1.StepFailedReason, f.message)
}

// abort gives the MachineDeployments whose move is not over what they had, and waits for the rest to come to rest.
func (d *decision) abort(s snapshot) {
	d.goOn(s)
	var waits []string
	for _, o := range s.objectsToMove() {
		had, why := o.before(), o.unsettled(s.objects)
		switch {
		case had == nil:
		case why == "":
			d.forget = append(d.forget, o.name())
		case o.deployment == nil:
			waits = append(waits, fmt.Sprintf("the control plane must come to %s, for which there is no way back: %s", o.version(), why))
		case o.version() != had.Version || o.template() != had.Template:
			d.undo = append(d.undo, o.name())
			waits = append(waits, fmt.Sprintf("workers %q go back to %s", o.name(), had.Version))
		default:
			waits = append(waits, fmt.Sprintf("workers %q go back to %s: %s", o.name(), had.Version, why))
		}
	}
	if len(waits) > 0 {
		d.tell(lifecyclev1.UpgradeAborting, lifecyclev1.AbortingReason, strings.Join(waits, "; "))
		return
	}
	message := "aborted: what was not done is left as it was"
	for i := range d.steps {
		step := &d.steps[i]
		if step.State == lifecyclev1.StepFailed && !ptr.Deref(s.upgrade.Spec.Abort, false) {
			message = "rolled back: " + step.Reason
		}
		if !over(*step) {
			step.State = lifecyclev1.StepUndone
		}
	}
	d.collect = true
	d.letAddonsGo(s)
	d.tell(lifecyclev1.UpgradeAborted, lifecyclev1.AbortedReason, message)
}

// newMachines are the machines of a step that are as it asks for.
func (s snapshot) newMachines(step upgrade.Step) []*clusterv1.Machine {
	var machines []*clusterv1.Machine
	switch step.Kind {
	case upgrade.MoveControlPlane:
		machines = s.objects.ControlPlaneMachines()
	case upgrade.MovePool:
		machines = s.objects.MachinesOf(step.Name)
	}
	return slices.DeleteFunc(machines, func(m *clusterv1.Machine) bool {
		upToDate := conditions.Get(m, clusterv1.MachineUpToDateCondition)
		return m.Spec.Version != step.To || !m.DeletionTimestamp.IsZero() || upToDate != nil && upToDate.Status == metav1.ConditionFalse
	})
}

// becameReady tells whether a machine has been a ready Node: what happens to it later is for health checks.
func becameReady(m *clusterv1.Machine) bool {
	if !m.Status.NodeRef.IsDefined() {
		return false
	}
	healthy := conditions.Get(m, clusterv1.MachineNodeReadyCondition)
	return healthy == nil || healthy.Status == metav1.ConditionTrue
}

// slowest says what the oldest of a step's machines that are not ready yet waits for.
func (s snapshot) slowest(step upgrade.Step) string {
	var oldest *clusterv1.Machine
	for _, m := range s.newMachines(step) {
		if !becameReady(m) && (oldest == nil || m.CreationTimestamp.Before(&oldest.CreationTimestamp)) {
			oldest = m
		}
	}
	if oldest == nil {
		return ""
	}
	return fmt.Sprintf("machine %q: %s", oldest.Name, cause(oldest))
}

// cause is what a machine says of itself: the first of its conditions, in the order of its life, that is not true.
func cause(m *clusterv1.Machine) string {
	for _, kind := range []string{clusterv1.MachineBootstrapConfigReadyCondition, clusterv1.MachineInfrastructureReadyCondition,
		clusterv1.MachineNodeHealthyCondition, clusterv1.MachineReadyCondition} {
		c := conditions.Get(m, kind)
		if c == nil || c.Status == metav1.ConditionTrue {
			continue
		}
		if c.Message != "" {
			return strings.Join(strings.Fields(c.Message), " ")
		}
		return c.Reason
	}
	return "it tells no reason"
}
