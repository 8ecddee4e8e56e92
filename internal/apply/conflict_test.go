package apply

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestTheManagersOfAConflictAreRead(t *testing.T) {
	resource := schema.GroupResource{Group: "apps", Resource: "deployments"}
	cases := map[string]struct {
		err  error
		want []Conflict
	}{
		"two managers": {
			apierrors.NewApplyConflict([]metav1.StatusCause{
				{Type: metav1.CauseTypeFieldManagerConflict, Field: ".spec.replicas", Message: `conflict with "kube-controller-manager" using apps/v1`},
				{Type: metav1.CauseTypeFieldManagerConflict, Field: ".metadata.labels.a", Message: `conflict with "kubectl-edit" using apps/v1 at 2026-01-01T00:00:00Z`},
			}, "Apply failed"),
			[]Conflict{{"kube-controller-manager", ".spec.replicas"}, {"kubectl-edit", ".metadata.labels.a"}},
		},
		"a write that came between": {apierrors.NewConflict(resource, "a", errors.New("the object has been modified")), nil},
		"another refusal":           {apierrors.NewNotFound(resource, "a"), nil},
		"no answer":                 {errors.New("connection refused"), nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, conflictsIn(tc.err)); diff != "" {
				t.Errorf("conflicts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestARefusalSaysWhatToDo(t *testing.T) {
	kind := schema.GroupKind{Group: "apps", Kind: "DaemonSet"}
	cases := map[string]struct {
		err  error
		next string
	}{
		"an immutable field": {
			apierrors.NewInvalid(kind, "a", field.ErrorList{field.Invalid(field.NewPath("spec", "selector"), "x", "field is immutable")}),
			"delete the object, then install again",
		},
		"no permission":           {apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "a", errors.New("no")), "ask for the permission"},
		"a namespace is missing":  {apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "demo"), "create the namespace first"},
		"a mistake in the bundle": {apierrors.NewBadRequest("unknown field"), ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if !isRefusal(tc.err) {
				t.Fatal("it is taken for a failure to ask")
			}
			got := refusal(tc.err)
			if !errors.Is(got, tc.err) || !strings.Contains(got.Error(), tc.next) {
				t.Errorf("refusal %q, want the cause and %q", got, tc.next)
			}
		})
	}
	if isRefusal(errors.New("connection refused")) {
		t.Error("a server that does not answer is taken for a refusal")
	}
}
