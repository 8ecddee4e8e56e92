package addon

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	addonsv1 "github.com/millwright-dev/millwright/api/addons/v1alpha1"
	"github.com/millwright-dev/millwright/internal/conditions"
)

// setStatus tells how far an Addon is.
func setStatus(addon *addonsv1.Addon, s *snapshot, p *plan) {
	status := &addon.Status
	status.ObservedGeneration = addon.Generation
	if !addon.DeletionTimestamp.IsZero() {
		conditions.Set(addon, conditions.False(addonsv1.AddonReadyCondition, addonsv1.DeletingReason,
			"%d of its releases are still there", p.left))
		return
	}
	status.Clusters, status.Updated = ptr.To(int32(p.clusters)), ptr.To(int32(p.updated))
	status.Ready, status.Failed = ptr.To(int32(p.ready)), ptr.To(int32(p.failed))
	conditions.Set(addon, rolledOut(s, p))
	conditions.Set(addon, unchallenged(p))
	conditions.Set(addon, readiness(s, p))
}

func readiness(s *snapshot, p *plan) metav1.Condition {
	switch {
	case s.unknown:
		return conditions.False(addonsv1.AddonReadyCondition, addonsv1.UnknownBundleReason, "the catalogue has no bundle %q", s.addon.Spec.Bundle)
	case p.clusters == 0:
		return conditions.True(addonsv1.AddonReadyCondition, addonsv1.NoClustersReason, "no cluster of the namespace is selected")
	case p.ready == p.clusters:
		return conditions.True(addonsv1.AddonReadyCondition, addonsv1.AllReadyReason, "")
	}
	message := fmt.Sprintf("%d of %d clusters are ready", p.ready, p.clusters)
	if p.failed > 0 {
		message += fmt.Sprintf("; failed: %s", listed(p.failures))
	}
	return conditions.False(addonsv1.AddonReadyCondition, addonsv1.NotAllReadyReason, "%s", message)
}

func rolledOut(s *snapshot, p *plan) metav1.Condition {
	switch {
	case s.unknown:
		return conditions.False(addonsv1.AddonRolledOutCondition, addonsv1.UnknownBundleReason,
			"the catalogue has no bundle %q: correct the name, or give the operator a catalogue that has it", s.addon.Spec.Bundle)
	case p.halted:
		return conditions.False(addonsv1.AddonRolledOutCondition, addonsv1.HaltedReason,
			"%d clusters have failed (%s), spec.rollout.maxFailures is %d: the other %d are left as they are; mend those, or change the Addon",
			p.failed, listed(p.failures), ptr.Deref(s.addon.Spec.Rollout.MaxFailures, 0), p.waiting)
	case p.waiting == 0:
		return conditions.True(addonsv1.AddonRolledOutCondition, addonsv1.RolledOutReason, "")
	case len(p.canaries) > 0:
		return conditions.False(addonsv1.AddonRolledOutCondition, addonsv1.RollingOutReason,
			"%d of %d clusters are to change; first the canaries have to be ready: %s", p.waiting, p.clusters, listed(p.canaries))
	}
	return conditions.False(addonsv1.AddonRolledOutCondition, addonsv1.RollingOutReason, "%d of %d clusters are to change", p.waiting, p.clusters)
}

func unchallenged(p *plan) metav1.Condition {
	var told []string
	for _, other := range slices.Sorted(maps.Keys(p.lost)) {
		told = append(told, fmt.Sprintf("Addon %q is older and has the bundle on %s", other, listed(p.lost[other])))
	}
	if len(p.strange) > 0 {
		told = append(told, fmt.Sprintf("AddonReleases that a person made are left alone on %s", listed(p.strange)))
	}
	if len(told) > 0 {
		return conditions.False(addonsv1.AddonUnchallengedCondition, addonsv1.OlderAddonWinsReason, "%s", strings.Join(told, "; "))
	}
	return conditions.True(addonsv1.AddonUnchallengedCondition, addonsv1.UnchallengedReason, "")
}
