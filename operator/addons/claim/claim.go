// Package claim tells which Addon has a say about a bundle on a cluster.
//
// In: the Addons of a namespace and a Cluster. Out: those that ask for the bundle there, the one that decides first. The
// controllers of Addons and of AddonReleases agree by it without speaking to each other. It is pure.
package claim

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/millwright-dev/millwright/api/addons/v1alpha1"
)

// Selects tells whether an Addon asks for its bundle on a cluster. An Addon or a Cluster that is being deleted asks for
// nothing; a selector that cannot be read selects nothing.
func Selects(addon *addonsv1.Addon, cluster *clusterv1.Cluster) bool {
	if !addon.DeletionTimestamp.IsZero() || !cluster.DeletionTimestamp.IsZero() || addon.Namespace != cluster.Namespace {
		return false
	}
	return Matches(addon.Spec.ClusterSelector, cluster)
}

// Matches tells whether a selector selects a cluster; nil selects none.
func Matches(selector *metav1.LabelSelector, cluster *clusterv1.Cluster) bool {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && parsed.Matches(labels.Set(cluster.Labels))
}

// Claimants lists the Addons that ask for a bundle on a cluster. The oldest comes first and decides.
func Claimants(addons []addonsv1.Addon, bundle string, cluster *clusterv1.Cluster) []*addonsv1.Addon {
	var claimants []*addonsv1.Addon
	for i := range addons {
		if addons[i].Spec.Bundle == bundle && Selects(&addons[i], cluster) {
			claimants = append(claimants, &addons[i])
		}
	}
	slices.SortFunc(claimants, func(a, b *addonsv1.Addon) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return claimants
}
