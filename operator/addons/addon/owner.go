package addon

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/millwright-dev/millwright/api/addons/v1alpha1"
)

// kind is that of Addons in owner references.
const kind = "Addon"

// addonOf names the Addon that controls a release; empty for one that a person made.
func addonOf(release *addonsv1.AddonRelease) string {
	owner := metav1.GetControllerOf(release)
	if owner == nil || owner.Kind != kind {
		return ""
	}
	return owner.Name
}

func ownedBy(release *addonsv1.AddonRelease, addon *addonsv1.Addon) bool {
	return metav1.IsControlledBy(release, addon)
}

// newRelease is what an Addon asks for on a cluster.
func newRelease(addon *addonsv1.Addon, cluster string) *addonsv1.AddonRelease {
	release := &addonsv1.AddonRelease{ObjectMeta: metav1.ObjectMeta{
		Namespace: addon.Namespace, Name: addonsv1.AddonReleaseName(cluster, addon.Spec.Bundle),
		Labels: map[string]string{addonsv1.BundleLabel: addon.Spec.Bundle, clusterv1.ClusterNameLabel: cluster},
	}}
	release.Spec.ClusterName, release.Spec.Bundle = cluster, addon.Spec.Bundle
	release.Spec.ReleaseTemplate = *addon.Spec.ReleaseTemplate.DeepCopy()
	own(release, addon)
	return release
}

// own makes a release an Addon's, whosever it was.
func own(release *addonsv1.AddonRelease, addon *addonsv1.Addon) {
	kept := release.OwnerReferences[:0:0]
	for _, ref := range release.OwnerReferences {
		if ref.Kind != kind {
			kept = append(kept, ref)
		}
	}
	release.OwnerReferences = append(kept, *metav1.NewControllerRef(addon, addonsv1.GroupVersion.WithKind(kind)))
}
