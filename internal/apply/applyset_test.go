package apply

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kubectlapply "k8s.io/kubectl/pkg/cmd/apply"
)

var (
	agent    = Member{ID: ID{Group: "apps", Kind: "DaemonSet", Namespace: "demo", Name: "agent"}, Owned: "0123456789abcdef"}
	settings = Member{ID: ID{Kind: "ConfigMap", Namespace: ParentNamespace, Name: "settings"}}
	things   = Member{ID: ID{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "things.example.com"}}
)

func TestTheSetsIDIsTheOneThatKubectlComputes(t *testing.T) {
	parent := &kubectlapply.ApplySetParentRef{
		Name: parentName("calico"), Namespace: ParentNamespace,
		RESTMapping: &meta.RESTMapping{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Scope: meta.RESTScopeNamespace},
	}
	want := kubectlapply.NewApplySet(parent, kubectlapply.ApplySetTooling{}, nil, nil).ID()
	if got := setID("calico"); got != want {
		t.Errorf("setID() = %s, want %s", got, want)
	}
}

func TestARecordIsAnApplySetParentAndIsReadBack(t *testing.T) {
	record := &Parent{
		Name: "demo", Version: "1.2.3", State: StateApplied,
		Parameters: map[string]any{"mtu": "1400"},
		Members:    []Member{settings, agent},
		Retained:   []Member{things},
	}
	object, err := record.object()
	if err != nil {
		t.Fatal(err)
	}
	wantLabels := map[string]string{"applyset.kubernetes.io/id": setID("demo"), "addons.millwright.dev/addon": "demo"}
	if diff := cmp.Diff(wantLabels, object.GetLabels()); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	wantAnnotations := map[string]string{
		"applyset.kubernetes.io/tooling":               "millwright/v1.0.0",
		"applyset.kubernetes.io/contains-group-kinds":  "ConfigMap,CustomResourceDefinition.apiextensions.k8s.io,DaemonSet.apps",
		"applyset.kubernetes.io/additional-namespaces": "demo",
	}
	if diff := cmp.Diff(wantAnnotations, object.GetAnnotations()); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	got, err := parseParent("demo", object)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(record, got); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
	if !sameParent(object, object.DeepCopy()) {
		t.Error("a record differs from itself")
	}
}

func TestAParentThatIsNotOursIsRefused(t *testing.T) {
	record := &Parent{Name: "demo", Version: "1.0.0", State: StateApplied}
	cases := map[string]struct {
		change func(*unstructured.Unstructured)
		// foreign is the tooling that a *ForeignParentError names; "-" for another error.
		foreign string
	}{
		"kept by kubectl": {func(o *unstructured.Unstructured) {
			o.SetAnnotations(map[string]string{toolingAnnotation: "kubectl/v1.37"})
		}, "kubectl/v1.37"},
		"a ConfigMap by chance": {func(o *unstructured.Unstructured) { o.SetAnnotations(nil) }, ""},
		"the id of another set": {func(o *unstructured.Unstructured) {
			o.SetLabels(map[string]string{setIDLabel: setID("other")})
		}, "-"},
		"a broken inventory": {func(o *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(o.Object, "{", "data", inventoryKey)
		}, "-"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			object, err := record.object()
			if err != nil {
				t.Fatal(err)
			}
			tc.change(object)
			_, err = parseParent("demo", object)
			if err == nil {
				t.Fatal("the parent is accepted")
			}
			var foreign *ForeignParentError
			if isForeign := errors.As(err, &foreign); isForeign != (tc.foreign != "-") {
				t.Fatalf("error %v (%T)", err, err)
			}
			if foreign != nil && foreign.Tooling != tc.foreign {
				t.Errorf("tooling %q, want %q", foreign.Tooling, tc.foreign)
			}
		})
	}
}
