package preflight

import (
	"cmp"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/millwright-dev/millwright/api/addons/v1alpha1"
	"github.com/millwright-dev/millwright/internal/bundle"
	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/lifecycle/upgrade"
)

// categories are those of the catalogue in the order in which add-ons of one phase move: kube-proxy goes before DNS, as
// kubeadm does it.
var categories = []string{"cni", "proxy", "dns", "cloud", "csi", "metrics", "other"}

// Addons tells the add-ons that releases brought to a cluster, in the order in which they are to move. One that the
// catalogue does not have cannot be judged and is left out. With stay none is moved.
func Addons(releases []*addonsv1.AddonRelease, catalogue *bundle.Catalogue, stay bool) []upgrade.Addon {
	var out []upgrade.Addon
	rank := map[string]int{}
	for _, release := range releases {
		entry, err := catalogue.Addon(release.Spec.Bundle)
		if err != nil || release.Status.Version == "" {
			continue
		}
		rank[entry.Name] = slices.Index(categories, entry.Category)
		out = append(out, addon(entry, release, stay))
	}
	slices.SortFunc(out, func(a, b upgrade.Addon) int {
		return cmp.Or(cmp.Compare(rank[a.Name], rank[b.Name]), cmp.Compare(a.Name, b.Name))
	})
	return out
}

func addon(entry *bundle.Addon, release *addonsv1.AddonRelease, stay bool) upgrade.Addon {
	a := upgrade.Addon{Name: entry.Name, Version: release.Status.Version, Stays: stay || !Movable(release)}
	phase := entry.Versions[0].Phase
	for i := range entry.Versions {
		v := &entry.Versions[i]
		if v.Version == a.Version {
			phase = v.Phase
		}
		a.Releases = append(a.Releases, upgrade.Release{
			Version: v.Version,
			// Ranges were checked when the catalogue was loaded; a version that is none fits nothing.
			Fits: func(kubernetes *semver.Version) bool {
				fits, err := v.Fits(kubernetes.String())
				return err == nil && fits
			},
			UpgradesFrom: func(installed string) bool {
				reached, err := v.UpgradesFromVersion(installed)
				older, olderErr := v.OlderThan(installed)
				return err == nil && olderErr == nil && reached && !older
			},
		})
	}
	a.Phase = upgrade.Phase(phase)
	return a
}

// Movable tells whether a release goes to the version that an upgrade holds it at.
func Movable(release *addonsv1.AddonRelease) bool {
	_, paused := release.Annotations[clusterv1.PausedAnnotation]
	return addonsv1.Follows(release.Spec.Version) && !paused && !ptr.Deref(release.Spec.Paused, false)
}

// Unready tells, by the name of the bundle, what is wrong with the releases that are not ready.
func Unready(releases []*addonsv1.AddonRelease) map[string]string {
	out := map[string]string{}
	for _, release := range releases {
		if conditions.IsTrue(release, addonsv1.ReadyCondition) {
			continue
		}
		why := "nothing is known of it yet"
		if c := conditions.Get(release, addonsv1.ReadyCondition); c != nil {
			if why = strings.Join(strings.Fields(c.Message), " "); why == "" {
				why = c.Reason
			}
		}
		out[release.Spec.Bundle] = why
	}
	return out
}

// OfCluster are the releases of a cluster among those of its namespace that are not being deleted.
func OfCluster(list *addonsv1.AddonReleaseList, cluster string) []*addonsv1.AddonRelease {
	var out []*addonsv1.AddonRelease
	for i := range list.Items {
		if release := &list.Items[i]; release.Spec.ClusterName == cluster && release.DeletionTimestamp.IsZero() {
			out = append(out, release)
		}
	}
	return out
}
