package upgrade

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	addonsv1 "github.com/millwright-dev/millwright/api/addons/v1alpha1"
	lifecyclev1 "github.com/millwright-dev/millwright/api/lifecycle/v1alpha1"
	"github.com/millwright-dev/millwright/internal/contract"
	"github.com/millwright-dev/millwright/internal/lifecycle/upgrade"
)

// snapshot is what a decision is made on.
type snapshot struct {
	upgrade *lifecyclev1.ClusterUpgrade
	objects upgrade.Objects
	// releases are the add-ons of the cluster that are managed here.
	releases []*addonsv1.AddonRelease
	// plan are the steps that are left, by what is observed.
	plan upgrade.Plan
	// templates are the machine templates that the steps lead to.
	templates map[target]*template
	// blockers and warnings are those of the preflight; it is made only until the first step has begun.
	blockers, warnings []upgrade.Finding
	// connecting tells that the preflight waits for the first connection to the workload cluster.
	connecting bool
	// opening says whether machines may be replaced now; windowErr that a window cannot be read.
	opening   upgrade.Opening
	windowErr error
	now       time.Time
}

// target is what a template is for: an object, the control plane when name is empty, at a version.
type target struct{ name, version string }

// template is a machine template that a step leads to.
type template struct {
	// name is what the object is to refer to. make is the template itself where it does not exist yet.
	name string
	make *unstructured.Unstructured
}

// decision is what is done, and what the status says.
type decision struct {
	// holds are written first, so that no add-on follows a control plane before its turn. arrived are the add-ons whose move
	// is over.
	holds   []hold
	arrived []string
	// moves come next; then what is halted, and what goes on.
	moves  []move
	halt   []string
	resume []string
	// undo are the MachineDeployments that get back what they had, forget those whose move is over.
	undo, forget []string
	// collect removes machine templates that nothing uses any more.
	collect bool

	phase   lifecyclev1.UpgradePhase
	reason  string
	message string
	steps   []lifecyclev1.Step
	// wake is when something changes that no watch tells; zero when nothing does.
	wake time.Time
}

// move brings an object, the control plane when name is empty, to a version and a template.
type move struct {
	name, version string
	template      *template
	// topology says that the version is the Cluster's own, spec.topology.version; there is no template then.
	topology bool
}

// decide says what to do next. It is pure.
func decide(s snapshot) decision {
	d := decision{steps: mergeSteps(s.upgrade.Status.Steps, s.plan.Steps, s.settling, s.now)}
	switch {
	case s.upgrade.Status.Phase.Over():
		d.keep(s.upgrade)
		return d
	case ptr.Deref(s.upgrade.Spec.Abort, false) || s.upgrade.Status.Phase == lifecyclev1.UpgradeAborting:
		d.abort(s)
		return d
	case s.windowErr != nil:
		d.tell(lifecyclev1.UpgradeBlocked, lifecyclev1.BlockedReason, s.windowErr.Error())
		return d
	}
	if s.connecting {
		d.tell(lifecyclev1.UpgradePending, lifecyclev1.ConnectingReason, "the workload cluster is being connected to")
		d.wake = s.now.Add(preflightEvery)
		return d
	}
	if blockers := slices.Concat(s.plan.Blockers, s.blockers); len(blockers) > 0 {
		d.tell(lifecyclev1.UpgradeBlocked, lifecyclev1.BlockedReason, describe(blockers))
		d.wake = s.now.Add(preflightEvery)
		return d
	}
	d.settle(s)
	running := s.running()
	if failed := s.failed(running); failed != nil {
		d.fail(s, *failed)
		return d
	}
	if held, reason, message := s.held(running); held {
		d.hold(s, running)
		d.tell(lifecyclev1.UpgradePaused, reason, message)
		if reason == lifecyclev1.OutsideWindowReason {
			d.wake = s.opening.Changes
		}
		return d
	}
	d.goOn(s)
	d.holdAddons(s)
	d.wake = earliest(d.wake, s.deadline(running), closing(s))
	if waits := s.waitsFor(running); waits != "" {
		d.tell(lifecyclev1.UpgradeRunning, lifecyclev1.StepRunningReason, waits)
		if s.anyStarted(running) {
			d.begin(s, running)
		}
		return d
	}
	if len(s.plan.Steps) == 0 {
		d.collect = true
		d.holds = nil
		d.letAddonsGo(s)
		d.tell(lifecyclev1.UpgradeCompleted, lifecyclev1.UpToDateReason, fmt.Sprintf("cluster %q is %s", s.objects.Cluster.Name, s.upgrade.Spec.Version))
		return d
	}
	d.begin(s, running)
	d.tell(lifecyclev1.UpgradeRunning, lifecyclev1.StepRunningReason, stepTitle(running[0])+" begins")
	return d
}

// preflightEvery is how often a blocked upgrade looks again: most of what blocks is in the workload cluster, which is
// not watched for it.
const preflightEvery = 30 * time.Second

// keep leaves the status of an upgrade that is over as it is.
func (d *decision) keep(u *lifecyclev1.ClusterUpgrade) {
	d.phase, d.message, d.steps = u.Status.Phase, u.Status.Message, u.Status.Steps
	d.reason = lifecyclev1.UpToDateReason
	if d.phase == lifecyclev1.UpgradeAborted {
		d.reason = lifecyclev1.AbortedReason
	}
}

func (d *decision) tell(phase lifecyclev1.UpgradePhase, reason, message string) {
	d.phase, d.reason, d.message = phase, reason, message
}

// begun tells whether any object was moved, by this upgrade or by hand: then a preflight would find its own work.
func (s snapshot) begun() bool {
	return slices.ContainsFunc(s.upgrade.Status.Steps, func(step lifecyclev1.Step) bool { return step.State != lifecyclev1.StepPending }) ||
		slices.ContainsFunc(s.objectsToMove(), func(o object) bool { return o.before() != nil }) ||
		slices.ContainsFunc(s.releases, func(release *addonsv1.AddonRelease) bool { return s.heldAt(release) != "" })
}

// running are the steps at the head of the plan that may be under way together: one, or as many MachineDeployments as the
// user allows.
func (s snapshot) running() []upgrade.Step {
	steps := s.plan.Steps
	if len(steps) == 0 || steps[0].Kind != upgrade.MovePool {
		return steps[:min(len(steps), 1)]
	}
	most := int(ptr.Deref(s.upgrade.Spec.Workers.MaxConcurrent, 1))
	n := 1
	for n < len(steps) && n < most && steps[n].Kind == upgrade.MovePool && steps[n].To == steps[0].To {
		n++
	}
	return steps[:n]
}

// started tells whether an object has been asked for what a step leads to.
func (s snapshot) started(step upgrade.Step) bool {
	if step.Kind == upgrade.MoveAddon {
		return s.heldAt(s.release(step.Name)) == step.To
	}
	o := s.object(step)
	if o == nil || o.version() != step.To {
		return false
	}
	want := s.templates[target{step.Name, step.To}]
	return want == nil || o.template() == want.name
}

// waitsFor says what must be over before another step begins: what the steps are about that have begun, and whatever was
// moved before. It is empty when a step may begin.
func (s snapshot) waitsFor(running []upgrade.Step) string {
	for _, step := range running {
		if s.started(step) {
			return s.progress(step)
		}
	}
	for _, o := range s.objectsToMove() {
		// One that is to be moved anew, with another image, need not settle first: it may never.
		again := slices.ContainsFunc(running, func(step upgrade.Step) bool { return step.Kind != upgrade.MoveAddon && step.Name == o.name() })
		if why := o.unsettled(s.objects); why != "" && o.before() != nil && !again {
			return describeObject(o) + ": " + why
		}
	}
	for _, release := range s.releases {
		if why := s.addonUnsettled(release); why != "" && moving(release) {
			return fmt.Sprintf("addon %q to %s: %s", release.Spec.Bundle, s.heldAt(release), why)
		}
	}
	return ""
}

// progress says how far a step is that has begun.
func (s snapshot) progress(step upgrade.Step) string {
	why := ""
	if release := s.release(step.Name); step.Kind == upgrade.MoveAddon {
		return stepTitle(step) + ": " + s.addonUnsettled(release)
	} else if step.Kind == upgrade.MoveControlPlane {
		why = upgrade.ControlPlaneUnsettled(s.objects)
	} else if deployment := s.objects.Deployment(step.Name); deployment != nil {
		why = upgrade.Unsettled(s.objects, deployment)
	}
	if why == "" {
		why = "the last machines are replaced"
	}
	if cause := s.slowest(step); cause != "" {
		why += "; " + cause
	}
	return stepTitle(step) + ": " + why
}

// begin moves the objects of steps that have not begun. While some have, others of their group may join them.
func (d *decision) begin(s snapshot, running []upgrade.Step) {
	d.mark(s, running, lifecyclev1.StepRunning, "")
	for _, step := range running {
		if s.started(step) {
			continue
		}
		if step.Kind == upgrade.MoveAddon {
			d.holds = append(d.holds, hold{name: step.Name, version: step.To, moves: true})
			continue
		}
		if s.objects.Cluster.Spec.Topology.IsDefined() {
			if step.Kind == upgrade.MoveControlPlane && s.objects.Cluster.Spec.Topology.Version != step.To {
				d.moves = append(d.moves, move{version: step.To, topology: true})
			}
			continue
		}
		d.moves = append(d.moves, move{name: step.Name, version: step.To, template: s.templates[target{step.Name, step.To}]})
	}
}

// settle forgets what objects had before whose move is over.
func (d *decision) settle(s snapshot) {
	for _, o := range s.objectsToMove() {
		if o.before() != nil && !s.inPlan(o) && o.unsettled(s.objects) == "" {
			d.forget = append(d.forget, o.name())
		}
	}
	d.settleAddons(s)
}

func (s snapshot) inPlan(o object) bool {
	return slices.ContainsFunc(s.plan.Steps, func(step upgrade.Step) bool {
		return step.Kind != upgrade.MoveAddon && step.Name == o.name()
	})
}

// deadline is when the next machine of a running step is late.
func (s snapshot) deadline(running []upgrade.Step) time.Time {
	var at time.Time
	for _, step := range running {
		for _, m := range s.newMachines(step) {
			if !becameReady(m) {
				at = earliest(at, m.CreationTimestamp.Add(s.timeout()))
			}
		}
	}
	return at
}

func (s snapshot) timeout() time.Duration {
	return time.Duration(ptr.Deref(s.upgrade.Spec.MachineTimeoutSeconds, 1200)) * time.Second
}

func closing(s snapshot) time.Time {
	if s.opening.Open {
		return s.opening.Changes
	}
	return time.Time{}
}

// earliest returns the first of the times that are set.
func earliest(times ...time.Time) time.Time {
	var first time.Time
	for _, t := range times {
		if !t.IsZero() && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	return first
}

func describe(blockers []upgrade.Finding) string {
	text := fmt.Sprintf("%s: %s: %s", blockers[0].Check, blockers[0].Object, blockers[0].Message)
	if more := len(blockers) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return text
}

func stepTitle(step upgrade.Step) string {
	switch step.Kind {
	case upgrade.MoveControlPlane:
		return "control plane to " + step.To
	case upgrade.MovePool:
		return fmt.Sprintf("workers %q to %s", step.Name, step.To)
	}
	return fmt.Sprintf("addon %q to %s", step.Name, step.To)
}

// versionOf reads what a control plane is asked for.
func versionOf(controlPlane *unstructured.Unstructured) string { return contract.Version(controlPlane) }
