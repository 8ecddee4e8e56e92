package integration

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/millwright-dev/millwright/api/addons/v1alpha1"
)

func newAddon(namespace, name, bundle string, selected map[string]string) *addonsv1.Addon {
	addon := &addonsv1.Addon{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	addon.Spec.Bundle = bundle
	addon.Spec.ClusterSelector = &metav1.LabelSelector{MatchLabels: selected}
	return addon
}

func newRelease(namespace, cluster, bundle string) *addonsv1.AddonRelease {
	release := &addonsv1.AddonRelease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: addonsv1.AddonReleaseName(cluster, bundle)}}
	release.Spec.ClusterName, release.Spec.Bundle = cluster, bundle
	return release
}

func TestAnAddonThatCannotBeMeantIsRefused(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	for name, tc := range map[string]struct {
		change func(*addonsv1.Addon)
		want   string
	}{
		"no bundle":           {func(a *addonsv1.Addon) { a.Spec.Bundle = "" }, "spec.bundle"},
		"a path for a bundle": {func(a *addonsv1.Addon) { a.Spec.Bundle = "../calico" }, "spec.bundle"},
		"no selector":         {func(a *addonsv1.Addon) { a.Spec.ClusterSelector = nil }, "spec.clusterSelector"},
		"half a version":      {func(a *addonsv1.Addon) { a.Spec.Version = "3.32" }, "spec.version"},
		"an unknown policy":   {func(a *addonsv1.Addon) { a.Spec.Drift = "Ignore" }, "spec.drift"},
		"half a service account": {func(a *addonsv1.Addon) {
			a.Spec.ServiceAccount.Name = "installer"
		}, "spec.serviceAccount.namespace"},
		"nothing at once": {func(a *addonsv1.Addon) {
			a.Spec.Rollout.MaxConcurrent = ptr.To(intstr.FromInt32(0))
		}, "spec.rollout.maxConcurrent"},
		"more than all": {func(a *addonsv1.Addon) {
			a.Spec.Rollout.MaxConcurrent = ptr.To(intstr.FromString("101%"))
		}, "spec.rollout.maxConcurrent"},
		"no failure allowed": {func(a *addonsv1.Addon) { a.Spec.Rollout.MaxFailures = ptr.To[int32](0) }, "spec.rollout.maxFailures"},
	} {
		t.Run(name, func(t *testing.T) {
			addon := newAddon(namespace, "calico", "calico", nil)
			tc.change(addon)
			if err := admin.Create(t.Context(), addon); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("create: %v, want a refusal that names %s", err, tc.want)
			}
		})
	}
}

func TestAnAddonKeepsItsBundle(t *testing.T) {
	t.Parallel()
	addon := newAddon(newNamespace(t), "network", "calico", nil)
	addon.Spec.Rollout.MaxConcurrent = ptr.To(intstr.FromString("20%"))
	create(t, addon)
	if addon.Spec.Version != "auto" || addon.Spec.Drift != addonsv1.DriftCorrect || addon.Spec.Conflicts != addonsv1.ConflictsRefuse ||
		addon.Spec.Deletion != addonsv1.DeletionUninstall || ptr.Deref(addon.Spec.HealthTimeoutSeconds, 0) != 300 {
		t.Errorf("the defaults are %+v", addon.Spec.ReleaseTemplate)
	}
	changed := addon.DeepCopy()
	changed.Spec.Bundle = "flannel"
	if err := admin.Patch(t.Context(), changed, client.MergeFrom(addon)); err == nil || !strings.Contains(err.Error(), "make another Addon") {
		t.Errorf("another bundle: %v, want a refusal", err)
	}
}

func TestAReleaseIsNamedAfterItsClusterAndBundle(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	wrong := newRelease(namespace, "prod", "calico")
	wrong.Name = "network"
	if err := admin.Create(t.Context(), wrong); err == nil || !strings.Contains(err.Error(), "metadata.name") {
		t.Errorf("another name: %v, want a refusal", err)
	}
	release := newRelease(namespace, "prod", "calico")
	create(t, release)
	moved := release.DeepCopy()
	moved.Spec.ClusterName = "dev"
	if err := admin.Patch(t.Context(), moved, client.MergeFrom(release)); err == nil || !strings.Contains(err.Error(), "cannot be changed") {
		t.Errorf("another cluster: %v, want a refusal", err)
	}
}
