package release

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/millwright-dev/millwright/internal/apply"
)

// maxNamed is how many objects an event names before it only counts.
const maxNamed = 3

// tell makes events of what a plan that was carried out has changed.
func (r *Reconciler) tell(s *snapshot, plan *apply.Plan) {
	if !plan.Changed() {
		return
	}
	event := func(reason, action, format string, args ...any) {
		r.Recorder.Eventf(s.release, s.cluster, corev1.EventTypeNormal, reason, action, format, args...)
	}
	version := plan.Set.Version
	switch {
	case s.record == nil:
		event("Installed", "Install", "%s %s: %s", plan.Set.Name, version, counts(plan))
	case s.record.Version != version:
		event("VersionChanged", "Install", "%s from %s to %s: %s", plan.Set.Name, s.record.Version, version, counts(plan))
	}
	var drift []apply.ID
	adopted := map[string]int{}
	for _, change := range plan.Changes {
		if change.Drifted && change.Action != apply.ActionUnchanged && s.record != nil && s.record.State == apply.StateApplied {
			drift = append(drift, change.ID)
		}
		for _, manager := range change.Adopts {
			adopted[manager]++
		}
	}
	if len(drift) > 0 {
		event("DriftCorrected", "Correct", "put right what somebody changed: %s", names(drift))
	}
	for manager, count := range adopted {
		event("Adopted", "Adopt", "%d objects are adopted from %s", count, manager)
	}
	var retained []apply.ID
	for _, removal := range plan.Removals {
		if removal.Action == apply.ActionRetain && !wasRetained(s.record, removal.ID) {
			retained = append(retained, removal.ID)
		}
	}
	if len(retained) > 0 {
		event("Retained", "Install", "no longer part of %s %s and left in the cluster: %s", plan.Set.Name, version, names(retained))
	}
}

func wasRetained(record *apply.Parent, id apply.ID) bool {
	if record == nil {
		return false
	}
	for _, member := range record.Retained {
		if member.ID == id {
			return true
		}
	}
	return false
}

// counts words what a plan does: 3 created, 1 pruned.
func counts(plan *apply.Plan) string {
	return apply.Revision{
		Created: plan.Count(apply.ActionCreate), Configured: plan.Count(apply.ActionConfigure), Recreated: plan.Count(apply.ActionRecreate),
		Pruned: plan.Count(apply.ActionPrune), Retained: plan.Count(apply.ActionRetain),
	}.Changes()
}

func names(ids []apply.ID) string {
	var shown []string
	for _, id := range ids[:min(len(ids), maxNamed)] {
		shown = append(shown, id.Full())
	}
	text := strings.Join(shown, ", ")
	if more := len(ids) - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
