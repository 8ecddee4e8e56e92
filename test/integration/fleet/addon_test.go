package fleet

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/millwright-dev/millwright/api/addons/v1alpha1"
)

// addon returns an Addon of a bundle for the clusters with a label.
func (b *bed) addon(name, bundle, key, value string, change func(*addonsv1.AddonSpec)) *addonsv1.Addon {
	a := &addonsv1.Addon{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name}}
	a.Spec.Bundle = bundle
	a.Spec.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
	if change != nil {
		change(&a.Spec)
	}
	return a
}

// releaseOf is the key of what an Addon makes.
func (b *bed) releaseOf(cluster, bundle string) *addonsv1.AddonRelease {
	return &addonsv1.AddonRelease{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: addonsv1.AddonReleaseName(cluster, bundle)}}
}

// wantCounts waits for the numbers of an Addon's status.
func (b *bed) wantCounts(a *addonsv1.Addon, clusters, updated, ready, failed int32) {
	b.t.Helper()
	b.eventually(func() string {
		if err := admin.Get(b.t.Context(), client.ObjectKeyFromObject(a), a); err != nil {
			return err.Error()
		}
		s := a.Status
		got := [4]int32{ptr.Deref(s.Clusters, -1), ptr.Deref(s.Updated, -1), ptr.Deref(s.Ready, -1), ptr.Deref(s.Failed, -1)}
		if want := [4]int32{clusters, updated, ready, failed}; got != want || s.ObservedGeneration != a.Generation {
			return fmt.Sprintf("Addon %s counts %v of generation %d, want %v of %d: %+v", a.Name, got, s.ObservedGeneration, want, a.Generation, s.Conditions)
		}
		return ""
	})
}

func TestAnAddonFollowsLabelsAndTheKubernetesVersion(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	name := b.bundle("demo",
		version{name: "1.0.0", fields: `kubernetes: ">=1.30 <1.37"`, manifests: settings(b.namespace, "one")},
		version{name: "2.0.0", fields: `kubernetes: ">=1.36"; upgradesFrom: ">=1.0.0"`, manifests: settings(b.namespace, "two")})
	b.cluster("old", "v1.35.4", remote, map[string]string{"env": "prod"})
	late := b.cluster("late", "v1.37.2", management, nil)
	a := b.addon("demo", name, "env", "prod", nil)
	b.create(a)
	b.start()

	release := b.releaseOf("old", name)
	b.wantReady(release, "1.0.0")
	b.wantCounts(a, 1, 1, 1, 0)
	b.want(a, addonsv1.AddonReadyCondition, "True", addonsv1.AllReadyReason)

	// The version follows the cluster's, with nobody changing the Addon.
	b.setVersion("old", "v1.37.2")
	b.wantReady(release, "2.0.0")
	if got := value(b.configMap(b.on(remote), b.namespace), "key"); got != "two" {
		t.Errorf("the cluster has %q, want what 2.0.0 has", got)
	}

	// A cluster that is labelled later gets it, and one that loses the label loses it.
	b.change(late, `{"metadata":{"labels":{"env":"prod"}}}`)
	second := b.releaseOf("late", name)
	b.wantReady(second, "2.0.0")
	b.wantCounts(a, 2, 2, 2, 0)
	b.change(late, `{"metadata":{"labels":{"env":null}}}`)
	b.wantGone(second)
	if b.configMap(b.on(management), b.namespace) != nil {
		t.Error("the objects are still in the cluster that no Addon selects")
	}
	b.wantCounts(a, 1, 1, 1, 0)

	b.delete(a)
	b.wantGone(a)
	b.wantGone(release)
	if b.configMap(b.on(remote), b.namespace) != nil {
		t.Error("the Addon is gone and its objects are not")
	}
}

func TestABundleThatIsBrokenStopsAfterTheFirstWave(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	refused := "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: default, name: Not_A_Name}\ndata: {color: red}\n"
	name := b.bundle("demo",
		version{name: "1.0.0", manifests: settings(b.namespace, "one")},
		version{name: "2.0.0", manifests: refused},
		version{name: "2.0.1", manifests: settings(b.namespace, "two")})
	b.cluster("first", "v1.37.2", remote, map[string]string{"env": "prod"})
	b.cluster("second", "v1.37.2", management, map[string]string{"env": "prod"})
	a := b.addon("demo", name, "env", "prod", func(s *addonsv1.AddonSpec) {
		s.Version = "1.0.0"
		s.Rollout = addonsv1.Rollout{MaxConcurrent: ptr.To(intstr.FromInt32(1)), MaxFailures: ptr.To(int32(1))}
	})
	b.create(a)
	stop := b.start()
	b.wantCounts(a, 2, 2, 2, 0)

	b.change(a, `{"spec":{"version":"2.0.0"}}`)
	b.want(a, addonsv1.AddonRolledOutCondition, "False", addonsv1.HaltedReason, `(["first"])`, "maxFailures is 1", "the other 1 are left as they are")
	b.wantReady(b.releaseOf("second", name), "1.0.0")
	if got := value(b.configMap(b.on(management), b.namespace), "key"); got != "one" {
		t.Errorf("the second cluster has %q, want it untouched", got)
	}

	// An operator that is killed and comes back stands where it stood.
	stop()
	b.start()
	b.change(a, `{"spec":{"version":"2.0.1"}}`)
	b.wantCounts(a, 2, 2, 2, 0)
	b.want(a, addonsv1.AddonRolledOutCondition, "True", addonsv1.RolledOutReason)
	for cluster, server := range map[string]client.Client{"first": b.on(remote), "second": b.on(management)} {
		b.wantReady(b.releaseOf(cluster, name), "2.0.1")
		if got := value(b.configMap(server, b.namespace), "key"); got != "two" {
			t.Errorf("cluster %s has %q, want what 2.0.1 has", cluster, got)
		}
	}
}

func TestAClusterThatIsRelabelledIsHandedOverWithItsObjects(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	name := b.bundle("demo",
		version{name: "1.0.0", manifests: settings(b.namespace, "one")},
		version{name: "2.0.0", fields: `upgradesFrom: ">=1.0.0"`, manifests: settings(b.namespace, "two")})
	cluster := b.cluster("prod", "v1.37.2", remote, map[string]string{"ring": "one"})
	first := b.addon("ring-one", name, "ring", "one", func(s *addonsv1.AddonSpec) { s.Version = "1.0.0" })
	second := b.addon("ring-two", name, "ring", "two", func(s *addonsv1.AddonSpec) { s.Version = "2.0.0" })
	b.create(first, second)
	b.start()
	release := b.releaseOf("prod", name)
	b.wantReady(release, "1.0.0")
	workload := b.on(remote)
	before := b.configMap(workload, b.namespace)
	uid := release.UID

	b.change(cluster, `{"metadata":{"labels":{"ring":"two"}}}`)
	b.wantReady(release, "2.0.0")
	after := b.configMap(workload, b.namespace)
	if after == nil || after.GetUID() != before.GetUID() || release.UID != uid {
		t.Errorf("deleted and made again: object %s, now %v; release %s, now %s", before.GetUID(), after.GetUID(), uid, release.UID)
	}
	if owner := metav1.GetControllerOf(release); owner == nil || owner.Name != "ring-two" {
		t.Errorf("the release is %+v's", owner)
	}
	b.wantCounts(first, 0, 0, 0, 0)

	// The Addon that had it before can go without taking anything along.
	b.delete(first)
	b.wantGone(first)
	b.wantReady(release, "2.0.0")
}

func TestOfTwoAddonsTheOlderHasTheBundle(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	name := b.bundle("demo", version{name: "1.0.0", manifests: settings(b.namespace, "one")})
	b.cluster("prod", "v1.37.2", remote, map[string]string{"env": "prod"})
	older := b.addon("a-older", name, "env", "prod", nil)
	b.create(older)
	b.start()
	b.wantCounts(older, 1, 1, 1, 0)
	newer := b.addon("b-newer", name, "env", "prod", func(s *addonsv1.AddonSpec) { s.Version = "1.0.0" })
	b.create(newer)
	b.want(newer, addonsv1.AddonUnchallengedCondition, "False", addonsv1.OlderAddonWinsReason, `Addon "a-older" is older and has the bundle on ["prod"]`)
	b.wantCounts(newer, 0, 0, 0, 0)

	// When the older one goes, the newer one has the bundle, and the objects stay.
	before := b.configMap(b.on(remote), b.namespace)
	b.delete(older)
	b.wantGone(older)
	b.wantCounts(newer, 1, 1, 1, 0)
	if after := b.configMap(b.on(remote), b.namespace); after == nil || after.GetUID() != before.GetUID() {
		t.Errorf("the objects did not stay: %v", after)
	}
	b.want(newer, addonsv1.AddonUnchallengedCondition, "True", addonsv1.UnchallengedReason)
}

func TestAClusterThatDoesNotAnswerKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	name := b.bundle("demo", version{name: "1.0.0", manifests: settings(b.namespace, "one")})
	b.cluster("away", "v1.37.2", remote, map[string]string{"env": "prod"})
	// Nobody listens there.
	secret := b.kubeconfig("away", "https://127.0.0.1:1", remote)
	b.delete(secret.DeepCopy())
	b.create(secret)
	b.cluster("here", "v1.37.2", management, map[string]string{"env": "prod"})
	a := b.addon("demo", name, "env", "prod", func(s *addonsv1.AddonSpec) {
		s.Rollout = addonsv1.Rollout{MaxConcurrent: ptr.To(intstr.FromInt32(1)), MaxFailures: ptr.To(int32(1))}
	})
	b.create(a)
	b.start()
	b.wantReady(b.releaseOf("here", name), "1.0.0")
	b.want(a, addonsv1.AddonReadyCondition, "False", addonsv1.NotAllReadyReason, "1 of 2 clusters are ready")

	// It comes back, and converges by itself.
	back := b.kubeconfig("away", remote.Admin.Host, remote)
	b.patchSecret(back)
	b.wantCounts(a, 2, 2, 2, 0)
}

// patchSecret replaces the data of a Secret.
func (b *bed) patchSecret(secret client.Object) {
	b.t.Helper()
	if err := admin.Update(b.t.Context(), secret); err != nil {
		b.t.Fatalf("update Secret %q: %v", secret.GetName(), err)
	}
}
