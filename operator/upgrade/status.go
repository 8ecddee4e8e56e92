package upgrade

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	lifecyclev1 "github.com/millwright-dev/millwright/api/lifecycle/v1alpha1"
	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/lifecycle/upgrade"
)

// maxMessage is the length that the schema of a message accepts, maxFindings that of the list of findings.
const (
	maxMessage  = 4096
	maxFindings = 200
)

// setStatus writes what was decided into the status.
func setStatus(u *lifecyclev1.ClusterUpgrade, d decision, found []lifecyclev1.Finding, now time.Time) {
	s := &u.Status
	s.ObservedGeneration = u.Generation
	s.Steps = d.steps
	if d.phase != s.Phase || d.reason != reasonOf(u) || s.Since == nil {
		s.Since = stamp(now)
	}
	s.Phase, s.Message = d.phase, shorten(d.message)
	if len(found) > 0 || !d.phase.Over() {
		s.Findings = found
	}
	if s.StartTime == nil && d.phase == lifecyclev1.UpgradeRunning {
		s.StartTime = stamp(now)
		for _, step := range d.steps {
			if step.Kind == string(upgrade.MoveControlPlane) || s.FromVersion == "" && step.Kind == string(upgrade.MovePool) {
				s.FromVersion = step.From
				break
			}
		}
	}
	if s.CompletionTime == nil && d.phase.Over() {
		s.CompletionTime = stamp(now)
	}
	setConditions(u, d)
}

func reasonOf(u *lifecyclev1.ClusterUpgrade) string {
	if c := conditions.Get(u, lifecyclev1.ProgressingCondition); c != nil {
		return c.Reason
	}
	return ""
}

func setConditions(u *lifecyclev1.ClusterUpgrade, d decision) {
	message := u.Status.Message
	preflight := metav1.Condition{Type: lifecyclev1.PreflightPassedCondition, Status: metav1.ConditionTrue, Reason: lifecyclev1.PassedReason}
	switch d.phase {
	case lifecyclev1.UpgradeBlocked:
		preflight.Status, preflight.Reason, preflight.Message = metav1.ConditionFalse, lifecyclev1.BlockedReason, message
	case lifecyclev1.UpgradePending:
		preflight.Status, preflight.Reason, preflight.Message = metav1.ConditionUnknown, d.reason, message
	}
	progressing := metav1.Condition{Type: lifecyclev1.ProgressingCondition, Status: metav1.ConditionFalse, Reason: d.reason, Message: message}
	if d.phase == lifecyclev1.UpgradeRunning || d.phase == lifecyclev1.UpgradeAborting {
		progressing.Status = metav1.ConditionTrue
	}
	completed := metav1.Condition{Type: lifecyclev1.CompletedCondition, Status: metav1.ConditionFalse, Reason: lifecyclev1.NotDoneReason}
	switch d.phase {
	case lifecyclev1.UpgradeCompleted:
		completed.Status, completed.Reason = metav1.ConditionTrue, lifecyclev1.UpToDateReason
	case lifecyclev1.UpgradeAborted:
		completed.Reason = lifecyclev1.AbortedReason
	}
	for _, c := range []metav1.Condition{preflight, progressing, completed} {
		conditions.Set(u, c)
	}
}

// findings are those of the plan and of the preflight, what stands in the way first.
func findings(s snapshot) []lifecyclev1.Finding {
	var out []lifecyclev1.Finding
	add := func(severity lifecyclev1.Severity, list []upgrade.Finding) {
		for _, f := range list {
			if len(out) < maxFindings {
				out = append(out, lifecyclev1.Finding{Check: f.Check, Severity: severity, Object: f.Object, Message: shorten(f.Message)})
			}
		}
	}
	add(lifecyclev1.Blocker, s.plan.Blockers)
	add(lifecyclev1.Blocker, s.blockers)
	add(lifecyclev1.Forced, s.plan.Forced)
	add(lifecyclev1.Warning, s.plan.Warnings)
	add(lifecyclev1.Warning, s.warnings)
	return out
}

func shorten(text string) string {
	if len(text) > maxMessage {
		return text[:maxMessage-3] + "..."
	}
	return text
}
