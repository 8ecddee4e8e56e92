package contract

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Apply creates obj by server-side apply, or keeps the one that is there: a second try with the same name finds the
// first. obj becomes what the API server stored; the caller looks at its deletionTimestamp. Status is not written.
//
// The API server refuses a second controller owner, so an object of the same name that belongs to somebody else is not
// taken over: the error is Invalid.
func Apply(ctx context.Context, c client.Client, obj client.Object, manager string) error {
	gvk, err := apiutil.GVKForObject(obj, c.Scheme())
	if err != nil {
		return fmt.Errorf("apply %T: %w", obj, err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return fmt.Errorf("apply %s %q: %w", gvk.Kind, client.ObjectKeyFromObject(obj), err)
	}
	u := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(content)}
	u.SetGroupVersionKind(gvk)
	delete(u.Object, "status")
	// Fields of the server's own: an apply that names a resource version refuses to create.
	for _, field := range []string{"creationTimestamp", "managedFields", "resourceVersion", "uid", "generation"} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
	data, err := json.Marshal(u.Object)
	if err != nil {
		return fmt.Errorf("apply %s %q: %w", gvk.Kind, client.ObjectKeyFromObject(obj), err)
	}
	// By the object's own type, for then a client that reads its own writes knows where to wait for this one. Into a blank
	// object: decoding keeps what the answer no longer has.
	stored := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(client.Object)
	if u, ok := stored.(*unstructured.Unstructured); ok {
		u.Object = map[string]any{}
	}
	stored.GetObjectKind().SetGroupVersionKind(gvk)
	stored.SetNamespace(obj.GetNamespace())
	stored.SetName(obj.GetName())
	err = c.Patch(ctx, stored, client.RawPatch(types.ApplyPatchType, data), client.FieldOwner(manager), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("apply %s %q: %w", gvk.Kind, client.ObjectKeyFromObject(obj), err)
	}
	stored.GetObjectKind().SetGroupVersionKind(gvk)
	reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(stored).Elem())
	return nil
}

// Paused tells whether obj must be left alone: its cluster is paused (cluster may be nil), or it bears the annotation.
func Paused(cluster *clusterv1.Cluster, obj metav1.Object) bool {
	if cluster != nil && cluster.Spec.Paused != nil && *cluster.Spec.Paused {
		return true
	}
	_, paused := obj.GetAnnotations()[clusterv1.PausedAnnotation]
	return paused
}

// OwnerMachine returns the Machine that owns obj, nil without an error when no owner reference names one yet.
func OwnerMachine(ctx context.Context, c client.Client, obj metav1.Object) (*clusterv1.Machine, error) {
	for _, owner := range obj.GetOwnerReferences() {
		if owner.Kind != "Machine" || groupOf(owner.APIVersion) != clusterv1.GroupVersion.Group {
			continue
		}
		machine := &clusterv1.Machine{}
		key := client.ObjectKey{Namespace: obj.GetNamespace(), Name: owner.Name}
		if err := c.Get(ctx, key, machine); err != nil {
			return nil, fmt.Errorf("get Machine %q, the owner of %q: %w", key, obj.GetName(), err)
		}
		return machine, nil
	}
	return nil, nil
}

// ClusterOf returns the Cluster that obj belongs to by its label cluster.x-k8s.io/cluster-name, or by an owner
// reference where the label is missing; nil without an error when it has neither.
func ClusterOf(ctx context.Context, c client.Client, obj metav1.Object) (*clusterv1.Cluster, error) {
	name := obj.GetLabels()[clusterv1.ClusterNameLabel]
	for _, owner := range obj.GetOwnerReferences() {
		if name == "" && owner.Kind == clusterv1.ClusterKind && groupOf(owner.APIVersion) == clusterv1.GroupVersion.Group {
			name = owner.Name
		}
	}
	if name == "" {
		return nil, nil
	}
	cluster := &clusterv1.Cluster{}
	key := client.ObjectKey{Namespace: obj.GetNamespace(), Name: name}
	if err := c.Get(ctx, key, cluster); err != nil {
		return nil, fmt.Errorf("get Cluster %q, to which %q belongs: %w", key, obj.GetName(), err)
	}
	return cluster, nil
}

func groupOf(apiVersion string) string {
	for i := range apiVersion {
		if apiVersion[i] == '/' {
			return apiVersion[:i]
		}
	}
	return ""
}
