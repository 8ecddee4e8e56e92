package release

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	addonsv1 "github.com/millwright-dev/millwright/api/addons/v1alpha1"
	"github.com/millwright-dev/millwright/internal/apply"
	"github.com/millwright-dev/millwright/internal/conditions"
)

// Limits of the status.
const (
	maxUnhealthy = 10
	maxMessage   = 1024
)

// retryInterval is how often something is tried again whose end cannot be watched: a field that somebody else owns, a
// file that is not served, an object that the server refuses.
const retryInterval = time.Minute

// report is what a reconcile found out.
type report struct {
	// unreachable says why the cluster does not answer; nothing else is known then.
	unreachable string
	kubernetes  string
	target      string
	digest      string
	record      *apply.Parent
	known       *knowledge
	conditions  []metav1.Condition
	retry       bool
}

func (found *report) set(c metav1.Condition) { found.conditions = append(found.conditions, c) }

// failed is a report of something that is not applied, and tried again after a while.
func (found report) failed(reason string, err error) report {
	found.set(conditions.False(addonsv1.AppliedCondition, reason, "%v", err))
	found.retry = true
	return found
}

// with adds what is known of the installed objects.
func (found report) with(known *knowledge) report {
	found.known, found.record = known, known.record
	if known.unpruned > 0 {
		found.set(conditions.False(addonsv1.AppliedCondition, addonsv1.PruningReason, "%d objects of the version before are pruned once all is healthy", known.unpruned))
	} else {
		found.set(conditions.True(addonsv1.AppliedCondition, addonsv1.AppliedReason, ""))
	}
	if len(known.drift) > 0 {
		found.set(conditions.False(addonsv1.InSyncCondition, addonsv1.DriftedReason, "somebody changed %s, and spec.drift is Report", names(known.drift)))
	} else {
		found.set(conditions.True(addonsv1.InSyncCondition, addonsv1.InSyncReason, ""))
	}
	return found
}

// setStatus writes what was found into the status, and returns after how long to look again without news; zero for
// never.
func setStatus(release *addonsv1.AddonRelease, found report, now time.Time) time.Duration {
	status := &release.Status
	if found.unreachable != "" {
		conditions.Set(release, conditions.Unknown(addonsv1.ReadyCondition, addonsv1.ClusterUnreachableReason, "%s", found.unreachable))
		return 0
	}
	status.ObservedGeneration = release.Generation
	if found.kubernetes != "" {
		status.KubernetesVersion = found.kubernetes
	}
	status.TargetVersion = found.target
	setRecord(status, found.record)
	for _, c := range found.conditions {
		conditions.Set(release, c)
	}
	var wake time.Duration
	if found.known != nil {
		if found.digest == found.known.digest {
			status.Digest = found.digest
		}
		wake = setHealth(release, found.known, now)
	}
	for _, kind := range []string{addonsv1.ResolvedCondition, addonsv1.AppliedCondition, addonsv1.HealthyCondition, addonsv1.InSyncCondition} {
		if conditions.Get(release, kind) == nil {
			conditions.Set(release, conditions.Unknown(kind, addonsv1.NotAppliedYetReason, ""))
		}
	}
	conditions.Set(release, readiness(release))
	if found.retry {
		return retryInterval
	}
	return wake
}

// setRecord tells what the cluster's own record says.
func setRecord(status *addonsv1.AddonReleaseStatus, record *apply.Parent) {
	status.Version, status.Objects, status.Retained, status.History = "", nil, nil, nil
	if record == nil {
		return
	}
	status.Version = record.Version
	status.Objects, status.Retained = ptr.To(int32(len(record.Members))), ptr.To(int32(len(record.Retained)))
	for i := len(record.History) - 1; i >= 0; i-- {
		revision := record.History[i]
		status.History = append(status.History, addonsv1.Revision{
			Revision: int32(revision.Number), Version: revision.Version, Time: ptr.To(metav1.NewTime(revision.Time)), Changes: revision.Changes(),
		})
	}
}

// setHealth tells how the objects are. What is not healthy has until its deadline before it counts as failed.
func setHealth(release *addonsv1.AddonRelease, known *knowledge, now time.Time) time.Duration {
	status := &release.Status
	unhealthy := known.unhealthy()
	status.Unhealthy = nil
	if len(unhealthy) == 0 {
		status.ProgressingSince = nil
		conditions.Set(release, conditions.True(addonsv1.HealthyCondition, addonsv1.HealthyReason, ""))
		return 0
	}
	var ids []apply.ID
	for _, object := range unhealthy {
		ids = append(ids, object.ID)
		if len(status.Unhealthy) < maxUnhealthy {
			status.Unhealthy = append(status.Unhealthy, addonsv1.ObjectHealth{
				Object: shorten(object.ID.Full()), Status: string(object.Status), Message: shorten(object.Message),
			})
		}
	}
	if status.ProgressingSince == nil {
		status.ProgressingSince = ptr.To(metav1.NewTime(now.Truncate(time.Second)))
	}
	timeout := time.Duration(ptr.Deref(release.Spec.HealthTimeoutSeconds, 300)) * time.Second
	message := fmt.Sprintf("%d of %d objects are not healthy: %s", len(unhealthy), len(known.objects), names(ids))
	if left := status.ProgressingSince.Add(timeout).Sub(now); left > 0 {
		conditions.Set(release, conditions.False(addonsv1.HealthyCondition, addonsv1.ProgressingReason, "%s", message))
		// The deadline is nothing that could be watched.
		return max(left, time.Second)
	}
	conditions.Set(release, conditions.False(addonsv1.HealthyCondition, addonsv1.UnhealthyReason, "after %s %s", timeout, message))
	return 0
}

// readiness sums the conditions up: the first that is not true says why.
func readiness(release *addonsv1.AddonRelease) metav1.Condition {
	var warnings []string
	for _, kind := range []string{addonsv1.ResolvedCondition, addonsv1.AppliedCondition, addonsv1.HealthyCondition, addonsv1.InSyncCondition} {
		c := conditions.Get(release, kind)
		if c.Status != metav1.ConditionTrue {
			return metav1.Condition{Type: addonsv1.ReadyCondition, Status: c.Status, Reason: c.Reason, Message: c.Message}
		}
		if c.Message != "" {
			warnings = append(warnings, c.Message)
		}
	}
	return conditions.True(addonsv1.ReadyCondition, addonsv1.ReadyReason, "%s", strings.Join(warnings, "; "))
}

func shorten(text string) string {
	if len(text) > maxMessage {
		return text[:maxMessage-3] + "..."
	}
	return text
}
