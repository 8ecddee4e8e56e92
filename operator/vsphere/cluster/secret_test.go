package cluster

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	infrav1 "github.com/millwright-dev/millwright/api/infrastructure/v1beta2"
)

// The client here has no garbage collector, as one that is late.
func TestTheLastOfTheClustersThatShareASecretTakesTheFinalizerOff(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, infrav1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	sharing := func(name string) *infrav1.VSphereCluster {
		cluster := vsphereCluster(nil)
		cluster.Namespace, cluster.Name, cluster.UID = "ns", name, types.UID(name)
		cluster.Spec.IdentityRef.Kind, cluster.Spec.IdentityRef.Name = infrav1.SecretKind, "login"
		return cluster
	}
	a, b := sharing("a"), sharing("b")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "login"}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(secret).Build()
	r := &Reconciler{Client: c, Live: c}
	guarded := func() bool {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
			t.Fatal(err)
		}
		return slices.Contains(secret.Finalizers, infrav1.IdentitySecretFinalizer)
	}
	for _, cluster := range []*infrav1.VSphereCluster{a, b} {
		guarded()
		if err := r.keepSecret(t.Context(), cluster, secret, cluster.Name); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.releaseSecret(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if !guarded() {
		t.Error("the finalizer is gone while cluster b still needs the Secret")
	}
	if err := r.releaseSecret(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if guarded() {
		t.Error("nobody is left to take the finalizer off")
	}
}
