package contract

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestRequestsAreForThoseThatAreConcerned(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := clusterv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	set := func(namespace, name, cluster string) *clusterv1.MachineSet {
		return &clusterv1.MachineSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: clusterv1.MachineSetSpec{ClusterName: cluster},
		}
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(set("here", "a", "one"), set("here", "b", "two"), set("there", "c", "one")).Build()
	got := RequestsFor(context.Background(), c, &clusterv1.MachineSetList{}, "here", func(set *clusterv1.MachineSet) bool { return set.Spec.ClusterName == "one" })
	want := []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: "here", Name: "a"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAnObjectIsFoundByTheKeyOfItsReferences(t *testing.T) {
	ref := clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.foo.test", Kind: "FooMachine", Name: "a"}
	obj := &unstructured.Unstructured{}
	obj.SetAPIVersion("infrastructure.foo.test/v1alpha7")
	obj.SetKind("FooMachine")
	obj.SetName("a")
	if got, want := ReferenceKeyOf(obj), ReferenceKey(ref); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	references := func(*clusterv1.Machine) []clusterv1.ContractVersionedObjectReference {
		return []clusterv1.ContractVersionedObjectReference{ref}
	}
	got := IndexReferences(references, ReferenceCRD)(&clusterv1.Machine{})
	if diff := cmp.Diff([]string{"foomachines.infrastructure.foo.test"}, got); diff != "" {
		t.Error(diff)
	}
}
