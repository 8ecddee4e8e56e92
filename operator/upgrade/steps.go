package upgrade

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	lifecyclev1 "github.com/millwright-dev/millwright/api/lifecycle/v1alpha1"
	"github.com/millwright-dev/millwright/internal/lifecycle/upgrade"
)

// mergeSteps returns the steps to be shown: those that are over, with their times, and then those that are left. What
// was shown and is neither running nor in the plan any more is done, or was never needed; settling says of one that is not
// what it still waits for.
func mergeSteps(shown []lifecyclev1.Step, left []upgrade.Step, settling func(lifecyclev1.Step) string, now time.Time) []lifecyclev1.Step {
	var steps []lifecyclev1.Step
	for _, step := range shown {
		switch {
		case step.State == lifecyclev1.StepDone || step.State == lifecyclev1.StepUndone:
			steps = append(steps, step)
		case slices.ContainsFunc(left, func(s upgrade.Step) bool { return same(step, s) }):
		case step.State != lifecyclev1.StepPending && settling(step) != "":
			step.State, step.Done, step.Reason = lifecyclev1.StepRunning, step.Machines, settling(step)
			steps = append(steps, step)
		case step.State != lifecyclev1.StepPending:
			step.State, step.Done, step.Reason = lifecyclev1.StepDone, step.Machines, ""
			step.CompletionTime = stamp(now)
			steps = append(steps, step)
		}
	}
	for _, s := range left {
		step := lifecyclev1.Step{Leg: int32(s.Leg), Kind: string(s.Kind), Name: s.Name, From: s.From, To: s.To, Machines: s.Machines,
			Reason: s.Reason, State: lifecyclev1.StepPending}
		if i := slices.IndexFunc(shown, func(before lifecyclev1.Step) bool { return same(before, s) && !over(before) }); i >= 0 {
			// What was told stays so: the leg and the number of machines are those of the beginning.
			had := shown[i]
			step.Leg, step.From, step.State, step.StartTime = had.Leg, had.From, had.State, had.StartTime
			step.Machines = max(had.Machines, s.Machines)
			step.Done = step.Machines - s.Machines
			if had.State == lifecyclev1.StepFailed {
				step.Reason = had.Reason
			}
		}
		steps = append(steps, step)
	}
	return steps
}

// settling says what a step that has replaced all of its machines, or installed its add-on, still waits for.
func (s snapshot) settling(step lifecyclev1.Step) string {
	if step.Kind == string(upgrade.MoveAddon) {
		if release := s.release(step.Name); release != nil && moving(release) && s.heldAt(release) == step.To {
			return s.addonUnsettled(release)
		}
		return ""
	}
	o := s.object(upgrade.Step{Kind: upgrade.StepKind(step.Kind), Name: step.Name})
	if o == nil || o.before() == nil || o.version() != step.To {
		return ""
	}
	return o.unsettled(s.objects)
}

func over(step lifecyclev1.Step) bool {
	return step.State == lifecyclev1.StepDone || step.State == lifecyclev1.StepUndone
}

func same(a lifecyclev1.Step, b upgrade.Step) bool {
	return a.Kind == string(b.Kind) && a.Name == b.Name && a.To == b.To
}

// mark sets the state of the steps that are running.
func (d *decision) mark(s snapshot, running []upgrade.Step, state lifecyclev1.StepState, reason string) {
	for i := range d.steps {
		step := &d.steps[i]
		if over(*step) || !slices.ContainsFunc(running, func(r upgrade.Step) bool { return same(*step, r) }) {
			continue
		}
		step.State = state
		if reason != "" {
			step.Reason = reason
		}
		if step.StartTime == nil {
			step.StartTime = stamp(s.now)
		}
	}
}

func stamp(t time.Time) *metav1.Time {
	m := metav1.NewTime(t.Truncate(time.Second))
	return &m
}
