package fleet

import (
	"fmt"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/millwright-dev/millwright/api/addons/v1alpha1"
)

func TestABundleIsInstalledKeptAndTakenOff(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	name := b.bundle("demo", version{name: "1.0.0", manifests: settings(b.namespace+"-a", "one") + settings(b.namespace+"-b", "two")})
	b.cluster("prod", "v1.37.2", remote, nil)
	release := b.release("prod", name, func(s *addonsv1.AddonReleaseSpec) {
		s.Parameters = map[string]apiextensionsv1.JSON{"color": {Raw: []byte(`"green"`)}}
	})
	b.create(release)
	b.start()

	b.wantReady(release, "1.0.0")
	workload := b.on(remote)
	if got := value(b.configMap(workload, b.namespace+"-a"), "color"); got != "green" {
		t.Errorf("the parameter is %q in the cluster, want green", got)
	}
	if s := release.Status; *s.Objects != 2 || s.KubernetesVersion != "v1.37.2" || len(s.History) != 1 || s.History[0].Changes != "2 created" || s.Digest == "" {
		t.Errorf("the status is %+v", s)
	}

	// Drift: an object that is deleted, and a value that a person changed.
	first := b.configMap(workload, b.namespace+"-a")
	if err := workload.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	second := b.configMap(workload, b.namespace+"-b")
	if err := workload.Patch(t.Context(), second, client.RawPatch("application/merge-patch+json", []byte(`{"data":{"key":"mine"}}`)), client.FieldOwner("kubectl-edit")); err != nil {
		t.Fatal(err)
	}
	b.eventually(func() string {
		one, two := value(b.configMap(workload, b.namespace+"-a"), "key"), value(b.configMap(workload, b.namespace+"-b"), "key")
		if one != "one" || two != "two" {
			return fmt.Sprintf("the values are %q and %q", one, two)
		}
		return ""
	})
	b.wantReady(release, "1.0.0")
	if len(release.Status.History) != 1 {
		t.Errorf("a correction is a revision: %+v", release.Status.History)
	}

	b.delete(release)
	b.wantGone(release)
	for _, suffix := range []string{"-a", "-b"} {
		if b.configMap(workload, b.namespace+suffix) != nil {
			t.Errorf("%s is still in the cluster", suffix)
		}
	}
	if b.live(workload, "v1", "ConfigMap", "kube-system", "millwright-addon-"+name) != nil {
		t.Error("the record is still in the cluster")
	}
}

// wantGone waits until an object of the management cluster is gone.
func (b *bed) wantGone(obj client.Object) {
	b.t.Helper()
	b.eventually(func() string {
		err := admin.Get(b.t.Context(), client.ObjectKeyFromObject(obj), obj)
		if apierrors.IsNotFound(err) {
			return ""
		}
		return fmt.Sprintf("%s is still there (%v): %+v", obj.GetName(), err, obj)
	})
}
