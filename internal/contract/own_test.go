package contract_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/millwright-dev/millwright/internal/contract"
)

func TestOwnTakesOverAnObjectOnce(t *testing.T) {
	machine := metav1.OwnerReference{APIVersion: "cluster.x-k8s.io/v1beta2", Kind: "Machine", Name: "m", UID: "1"}
	controller := machine
	controller.Controller, controller.BlockOwnerDeletion = new(true), new(true)
	set := metav1.OwnerReference{APIVersion: "cluster.x-k8s.io/v1beta2", Kind: "MachineSet", Name: "s", UID: "2"}
	foreign := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "3"}
	stale := machine
	stale.UID = "0"
	theirs := foreign
	theirs.Controller = new(true)

	for name, tc := range map[string]struct {
		owners, want []metav1.OwnerReference
		labels       map[string]string
		writes       int
		refused      bool
	}{
		"nobody's":                       {want: []metav1.OwnerReference{controller}, writes: 1},
		"the set hands it over":          {owners: []metav1.OwnerReference{set, foreign}, want: []metav1.OwnerReference{foreign, controller}, writes: 1},
		"an owner that was restored":     {owners: []metav1.OwnerReference{stale}, want: []metav1.OwnerReference{controller}, writes: 1},
		"ours already":                   {owners: []metav1.OwnerReference{controller}, labels: map[string]string{"cluster.x-k8s.io/cluster-name": "c"}, want: []metav1.OwnerReference{controller}},
		"somebody else's":                {owners: []metav1.OwnerReference{theirs}, want: []metav1.OwnerReference{theirs}, refused: true},
		"ours, but the label is missing": {owners: []metav1.OwnerReference{controller}, labels: map[string]string{"a": "b"}, want: []metav1.OwnerReference{controller}, writes: 1},
	} {
		t.Run(name, func(t *testing.T) {
			obj := object(t, "metadata: {name: obj, namespace: ns, uid: u}")
			obj.SetOwnerReferences(tc.owners)
			obj.SetLabels(tc.labels)
			writes := 0
			c := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithObjects(obj).WithInterceptorFuncs(interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
					writes++
					return c.Patch(ctx, obj, p, opts...)
				},
			}).Build()
			err := contract.Own(context.Background(), c, obj, machine, "c", set.UID)
			if errors.Is(err, contract.ErrForeign) != tc.refused || (err != nil) != tc.refused {
				t.Fatalf("error: %v", err)
			}
			if d := cmp.Diff(tc.want, obj.GetOwnerReferences()); d != "" {
				t.Errorf("owners (-want +got):\n%s", d)
			}
			if writes != tc.writes {
				t.Errorf("%d writes, want %d", writes, tc.writes)
			}
			if !tc.refused && obj.GetLabels()["cluster.x-k8s.io/cluster-name"] != "c" {
				t.Errorf("labels: %v", obj.GetLabels())
			}
		})
	}
}
