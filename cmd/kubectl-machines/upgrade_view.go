package main

import (
	"fmt"
	"strings"
	"time"

	lifecyclev1 "github.com/millwright-dev/millwright/api/lifecycle/v1alpha1"
	"github.com/millwright-dev/millwright/internal/cli"
)

// barWidth is how many characters a bar of progress has.
const barWidth = 12

// bar draws how much of a whole is done.
func bar(done, all int32) string {
	filled := 0
	if all > 0 {
		filled = min(barWidth, int(done)*barWidth/int(all))
	}
	return "[" + strings.Repeat("#", filled) + strings.Repeat(".", barWidth-filled) + "]"
}

// stepMarks begin the line of a step on a terminal.
var stepMarks = map[lifecyclev1.StepState]string{
	lifecyclev1.StepPending: " ", lifecyclev1.StepRunning: ">", lifecyclev1.StepFailed: "!", lifecyclev1.StepDone: "x", lifecyclev1.StepUndone: "-",
}

// upgradeScreen draws an upgrade for a terminal: what is waited for, then the legs with their steps and a bar for each that
// replaces machines.
func upgradeScreen(u *lifecyclev1.ClusterUpgrade, now time.Time) []string {
	head := upgradeLine(u)
	if since := u.Status.Since; since != nil && !u.Status.Phase.Over() {
		head += " (" + cli.Age(now, since.Time) + ")"
	}
	screen := []string{head}
	leg, width := int32(-1), 0
	for i := range u.Status.Steps {
		width = max(width, len(stepName(&u.Status.Steps[i])))
	}
	for i := range u.Status.Steps {
		step := &u.Status.Steps[i]
		if step.Leg != leg {
			leg = step.Leg
			screen = append(screen, legTitle(leg, u.Status.Steps))
		}
		line := fmt.Sprintf("  %s %-*s  %s -> %s", stepMarks[step.State], width, stepName(step), step.From, step.To)
		if step.Machines > 0 {
			line += fmt.Sprintf("  %s %d/%d", bar(step.Done, step.Machines), step.Done, step.Machines)
		}
		if took := stepTook(step, now); took != "" {
			line += "  " + took
		}
		screen = append(screen, line)
	}
	return screen
}

// legTitle says where a leg leads: the version of its control plane, or of its workers where that stays.
func legTitle(leg int32, steps []lifecyclev1.Step) string {
	if leg == 0 {
		return "before the first leg"
	}
	for _, step := range steps {
		if step.Leg == leg && step.Kind == "control-plane" {
			return fmt.Sprintf("leg %d: %s -> %s", leg, step.From, step.To)
		}
	}
	return fmt.Sprintf("leg %d", leg)
}

func stepName(step *lifecyclev1.Step) string { return strings.TrimSpace(step.Kind + " " + step.Name) }

// stepTook is how long a step took, or has been running; empty when it has not begun.
func stepTook(step *lifecyclev1.Step, now time.Time) string {
	switch {
	case step.StartTime == nil:
		return ""
	case step.CompletionTime != nil:
		return cli.Age(step.CompletionTime.Time, step.StartTime.Time)
	}
	return cli.Age(now, step.StartTime.Time)
}

// stepTeller tells the changes of steps, a line each, where there is no terminal.
type stepTeller struct {
	told map[string]lifecyclev1.StepState
}

// tell returns a line for each step whose state is another than when it was asked before.
func (s *stepTeller) tell(u *lifecyclev1.ClusterUpgrade, now time.Time) []string {
	if s.told == nil {
		s.told = map[string]lifecyclev1.StepState{}
	}
	var lines []string
	for i := range u.Status.Steps {
		step := &u.Status.Steps[i]
		key := step.Kind + "/" + step.Name + "/" + step.To
		if before, known := s.told[key]; before == step.State || !known && step.State == lifecyclev1.StepPending {
			continue
		}
		s.told[key] = step.State
		line := fmt.Sprintf("%s: %s %s -> %s: %s", u.Spec.ClusterName, stepName(step), step.From, step.To, step.State)
		if step.State == lifecyclev1.StepDone {
			line += " after " + stepTook(step, now)
			if step.Machines > 0 {
				line += fmt.Sprintf(", %d replaced", step.Machines)
			}
		}
		lines = append(lines, line)
	}
	return lines
}
