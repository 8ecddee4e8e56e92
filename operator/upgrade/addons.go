package upgrade

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/millwright-dev/millwright/api/addons/v1alpha1"
	lifecyclev1 "github.com/millwright-dev/millwright/api/lifecycle/v1alpha1"
	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/preflight"
)

// hold says at which version an add-on is held, by the name of its bundle. An empty version lets it go.
type hold struct {
	name, version string
	// moves tells that it is not the version that the add-on has.
	moves bool
}

// releases reads the add-ons of a cluster.
func (r *Reconciler) releases(ctx context.Context, cluster *clusterv1.Cluster) ([]*addonsv1.AddonRelease, error) {
	list := &addonsv1.AddonReleaseList{}
	if err := r.Client.List(ctx, list, client.InNamespace(cluster.Namespace)); err != nil {
		return nil, fmt.Errorf("list the AddonReleases of cluster %q: %w", cluster.Name, err)
	}
	return preflight.OfCluster(list, cluster.Name), nil
}

func (s snapshot) release(name string) *addonsv1.AddonRelease {
	for _, release := range s.releases {
		if release.Spec.Bundle == name {
			return release
		}
	}
	return nil
}

// heldAt is the version at which this upgrade holds a release; empty where it does not.
func (s snapshot) heldAt(release *addonsv1.AddonRelease) string {
	if release == nil || release.Annotations[lifecyclev1.HaltedByAnnotation] != s.upgrade.Name {
		return ""
	}
	return release.Annotations[addonsv1.HeldVersionAnnotation]
}

// moving tells whether an upgrade moved a release and has not seen the end of it.
func moving(release *addonsv1.AddonRelease) bool {
	return release.Annotations[lifecyclev1.BeforeAnnotation] != ""
}

// holdAddons keeps the add-ons that follow the Kubernetes version where they are: the control plane is about to move.
func (d *decision) holdAddons(s snapshot) {
	for _, release := range s.releases {
		if preflight.Movable(release) && release.Status.Version != "" && s.heldAt(release) == "" {
			d.holds = append(d.holds, hold{name: release.Spec.Bundle, version: release.Status.Version})
		}
	}
}

// letAddonsGo lets all that this upgrade holds follow the Kubernetes version again.
func (d *decision) letAddonsGo(s snapshot) {
	for _, release := range s.releases {
		if s.heldAt(release) != "" {
			d.holds = append(d.holds, hold{name: release.Spec.Bundle})
		}
	}
}

// settleAddons forgets that add-ons were moved which are there, and healthy.
func (d *decision) settleAddons(s snapshot) {
	for _, release := range s.releases {
		if moving(release) && s.addonUnsettled(release) == "" {
			d.arrived = append(d.arrived, release.Spec.Bundle)
		}
	}
}

// addonUnsettled says what an add-on still has to do until it is what it is held at; empty when nothing.
func (s snapshot) addonUnsettled(release *addonsv1.AddonRelease) string {
	want := s.heldAt(release)
	switch {
	case want == "" || !preflight.Movable(release):
		// Whoever pinned or paused it meanwhile has taken it out of our hands.
		return ""
	case release.Status.TargetVersion != want:
		return "its controller has not seen the version yet"
	}
	for _, kind := range []string{addonsv1.ResolvedCondition, addonsv1.AppliedCondition, addonsv1.HealthyCondition} {
		if c := conditions.Get(release, kind); c == nil || c.Status != metav1.ConditionTrue {
			return reasonWhy(c)
		}
	}
	if release.Status.Version != want {
		return fmt.Sprintf("%s is installed", release.Status.Version)
	}
	return ""
}

// addonFailed says why an add-on will not come to what it is held at without somebody's doing; empty while it may.
func (s snapshot) addonFailed(release *addonsv1.AddonRelease) string {
	if release.Status.TargetVersion != s.heldAt(release) {
		return ""
	}
	resolved, applied, healthy := conditions.Get(release, addonsv1.ResolvedCondition), conditions.Get(release, addonsv1.AppliedCondition), conditions.Get(release, addonsv1.HealthyCondition)
	switch {
	case resolved != nil && resolved.Status == metav1.ConditionFalse:
		return reasonWhy(resolved)
	case applied != nil && applied.Status == metav1.ConditionFalse && slices.Contains(failures, applied.Reason):
		return reasonWhy(applied)
	case healthy != nil && healthy.Status == metav1.ConditionFalse && healthy.Reason == addonsv1.UnhealthyReason:
		return reasonWhy(healthy)
	}
	return ""
}

// failures are the reasons for which something is not applied that do not pass by themselves.
var failures = []string{addonsv1.ParametersReason, addonsv1.SourceReason, addonsv1.ConflictReason, addonsv1.RefusedReason}

func reasonWhy(c *metav1.Condition) string {
	switch {
	case c == nil:
		return "nothing is known of it yet"
	case c.Message != "":
		return c.Message
	}
	return c.Reason
}

// holdRelease writes at which version an add-on is held, in one write that also keeps what it had.
func (r *Reconciler) holdRelease(ctx context.Context, s snapshot, h hold) error {
	return r.editRelease(ctx, s, h.name, func(release *addonsv1.AddonRelease) { holdAt(release, s.upgrade.Name, h) })
}

func holdAt(release *addonsv1.AddonRelease, by string, h hold) {
	switch {
	case h.version == "":
		by = ""
		annotate(release, lifecyclev1.BeforeAnnotation, "")
	case h.moves:
		// A string always encodes.
		had, _ := json.Marshal(before{Version: release.Status.Version})
		annotate(release, lifecyclev1.BeforeAnnotation, string(had))
	}
	annotate(release, addonsv1.HeldVersionAnnotation, h.version)
	annotate(release, lifecyclev1.HaltedByAnnotation, by)
}

func (r *Reconciler) editRelease(ctx context.Context, s snapshot, name string, change func(*addonsv1.AddonRelease)) error {
	release := s.release(name)
	if release == nil {
		return nil
	}
	stored := release.DeepCopy()
	change(release)
	if err := r.Client.Patch(ctx, release, optimistic(stored), client.FieldOwner(fieldOwner)); err != nil {
		return fmt.Errorf("hold AddonRelease %q at a version: %w", release.Name, err)
	}
	return nil
}
