package contract

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Typed returns an empty object of the Go type in which a scheme knows a kind, nil where it knows none. The kind's own
// controller keeps a cache of such objects, so those who know the kind by its contract only share it: a second one would
// double the memory, and neither would wait for what was written through the other.
//
// Templates are not typed: they are copied whole, with fields that our type of them may lack.
func Typed(scheme *runtime.Scheme, gvk schema.GroupVersionKind) client.Object {
	if !scheme.Recognizes(gvk) || strings.HasSuffix(gvk.Kind, clusterv1.TemplateSuffix) {
		return nil
	}
	obj, err := scheme.New(gvk)
	if err != nil {
		return nil
	}
	typed, _ := obj.(client.Object)
	return typed
}

// Untyped returns obj as those see it who know its kind by contract only. Objects of a cache do not tell their kind, so
// it is given.
func Untyped(obj client.Object, gvk schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return u, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("convert %s %q: %w", gvk.Kind, client.ObjectKeyFromObject(obj), err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)
	return u, nil
}
