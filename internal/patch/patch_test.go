package patch_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/patch"
)

// writes counts what reaches the API server.
type writes struct{ main, status int }

func newClient(t *testing.T, counted *writes, objs ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := clusterv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objs...).WithStatusSubresource(objs...).
		WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
				counted.main++
				return c.Patch(ctx, obj, p, opts...)
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
				counted.status++
				err := c.SubResource(sub).Patch(ctx, obj, p, opts...)
				if err != nil && apierrors.ReasonForError(err) == metav1.StatusReasonUnknown {
					// The API server answers a JSON patch whose test fails with 422; the fake client with a bare error.
					return apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "patch", schema.GroupResource{}, "", err.Error(), 0, false)
				}
				return err
			},
		}).Build()
}

func machine() *clusterv1.Machine {
	return &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "m", Labels: map[string]string{"keep": "", "drop": ""}},
		Spec:       clusterv1.MachineSpec{ClusterName: "c"},
	}
}

func get(t *testing.T, c client.Client) *clusterv1.Machine {
	t.Helper()
	m := &clusterv1.Machine{}
	if err := c.Get(context.Background(), client.ObjectKey{Namespace: "default", Name: "m"}, m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestAnUnchangedObjectIsNotWritten(t *testing.T) {
	counted := &writes{}
	c := newClient(t, counted, machine())
	m := get(t, c)
	if err := patch.New(m, c).Patch(context.Background(), m); err != nil {
		t.Fatal(err)
	}
	if *counted != (writes{}) {
		t.Errorf("writes: %+v", *counted)
	}
}

func TestSpecAndStatusAreOneWriteEach(t *testing.T) {
	counted := &writes{}
	c := newClient(t, counted, machine())
	m := get(t, c)
	helper := patch.New(m, c)
	m.Spec.ProviderID = "x://1"
	delete(m.Labels, "drop")
	m.Status.Phase = "Running"
	conditions.Set(m, conditions.True("Ready", "Ready", ""))
	if err := helper.Patch(context.Background(), m); err != nil {
		t.Fatal(err)
	}
	if *counted != (writes{main: 1, status: 1}) {
		t.Errorf("writes: %+v", *counted)
	}
	stored := get(t, c)
	if stored.Spec.ProviderID != "x://1" || stored.Status.Phase != "Running" || !conditions.IsTrue(stored, "Ready") {
		t.Errorf("stored: %+v", stored)
	}
	if d := cmp.Diff(map[string]string{"keep": ""}, stored.Labels); d != "" {
		t.Errorf("labels (-want +got):\n%s", d)
	}
	if d := cmp.Diff(stored, m); d != "" {
		t.Errorf("the object is not what was stored (-stored +object):\n%s", d)
	}

	if err := helper.Patch(context.Background(), m); err != nil {
		t.Fatal(err)
	}
	if *counted != (writes{main: 1, status: 1}) {
		t.Errorf("a second Patch without a change wrote: %+v", *counted)
	}
}

func TestWritersOfDifferentConditionsKeepEachOthers(t *testing.T) {
	counted := &writes{}
	c := newClient(t, counted, machine())
	ctx := context.Background()

	// Both read the same state.
	mine, theirs := get(t, c), get(t, c)
	myHelper, theirHelper := patch.New(mine, c), patch.New(theirs, c)
	conditions.Set(theirs, conditions.True("UpToDate", "UpToDate", ""))
	if err := theirHelper.Patch(ctx, theirs); err != nil {
		t.Fatal(err)
	}
	conditions.Set(mine, conditions.True("Ready", "Ready", ""))
	mine.Status.Phase = "Running"
	if err := myHelper.Patch(ctx, mine); err != nil {
		t.Fatal(err)
	}

	stored := get(t, c)
	if !conditions.IsTrue(stored, "UpToDate") || !conditions.IsTrue(stored, "Ready") || stored.Status.Phase != "Running" {
		t.Errorf("status: %+v", stored.Status)
	}
}

func TestAConcurrentChangeOfFinalizersIsAConflict(t *testing.T) {
	c := newClient(t, &writes{}, machine())
	ctx := context.Background()
	mine, theirs := get(t, c), get(t, c)
	myHelper, theirHelper := patch.New(mine, c), patch.New(theirs, c)
	theirs.Finalizers = []string{"example.com/theirs"}
	if err := theirHelper.Patch(ctx, theirs); err != nil {
		t.Fatal(err)
	}
	mine.Finalizers = []string{"example.com/mine"}
	if err := myHelper.Patch(ctx, mine); !apierrors.IsConflict(err) {
		t.Errorf("error %v, want a conflict", err)
	}
	if d := cmp.Diff([]string{"example.com/theirs"}, get(t, c).Finalizers); d != "" {
		t.Errorf("finalizers (-want +got):\n%s", d)
	}
}

func TestTheLastFinalizerGoesWithoutAStatus(t *testing.T) {
	m := machine()
	m.Finalizers = []string{"example.com/mine"}
	counted := &writes{}
	c := newClient(t, counted, m)
	ctx := context.Background()
	if err := c.Delete(ctx, m); err != nil {
		t.Fatal(err)
	}
	deleting := get(t, c)
	helper := patch.New(deleting, c)
	deleting.Finalizers = nil
	deleting.Status.Phase = "Deleted"
	if err := helper.Patch(ctx, deleting); err != nil {
		t.Fatal(err)
	}
	if *counted != (writes{main: 1}) {
		t.Errorf("writes: %+v", *counted)
	}
}
