package contract_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/millwright-dev/millwright/internal/contract"
)

func TestKindsAreTypedWhereTheyAreKnownAndNoTemplates(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := bootstrapv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		gvk  schema.GroupVersionKind
		want bool
	}{
		"known":                    {bootstrapv1.GroupVersion.WithKind("KubeadmConfig"), true},
		"known in another version": {schema.GroupVersionKind{Group: bootstrapv1.GroupVersion.Group, Version: "v1alpha1", Kind: "KubeadmConfig"}, false},
		"another provider's":       {schema.GroupVersionKind{Group: "infrastructure.foo.test", Version: "v1", Kind: "FooMachine"}, false},
		"a template, copied whole": {bootstrapv1.GroupVersion.WithKind("KubeadmConfigTemplate"), false},
		"no object of its own":     {bootstrapv1.GroupVersion.WithKind("KubeadmConfigList"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := contract.Typed(scheme, tc.gvk); (got != nil) != tc.want {
				t.Errorf("typed as %T", got)
			}
		})
	}
}

func TestAnUntypedObjectTellsItsKindAndWhatTheTypedOneHolds(t *testing.T) {
	config := &bootstrapv1.KubeadmConfig{Status: bootstrapv1.KubeadmConfigStatus{DataSecretName: "data"}}
	config.Name = "c"
	config.Status.Initialization.DataSecretCreated = new(true)
	u, err := contract.Untyped(config, bootstrapv1.GroupVersion.WithKind("KubeadmConfig"))
	if err != nil {
		t.Fatal(err)
	}
	if name, created := contract.DataSecret(u); u.GetKind() != "KubeadmConfig" || u.GetName() != "c" || name != "data" || !created {
		t.Errorf("untyped: %v", u.Object)
	}
	if config.Kind != "" {
		t.Error("the object of the cache was changed")
	}
}
