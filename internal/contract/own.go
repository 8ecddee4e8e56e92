package contract

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ErrForeign says that an object is another's: it has a controller that is neither the owner who wants it nor one of its
// predecessors. What such an object reports, and its deletion, are none of our business.
var ErrForeign = errors.New("refer to an object of your own")

// Own makes owner the controller of obj and labels obj with the cluster's name; it writes nothing when that is so
// already, or when obj is being deleted. Owners with a UID in predecessors hand obj over: their references are dropped,
// and so is one of owner's own name with another UID, as a restored backup has them.
//
// The patch tests the owners that it replaces and nothing else, so that a provider which writes other fields of a new
// object at the same moment is no conflict.
func Own(ctx context.Context, c client.Client, obj *unstructured.Unstructured, owner metav1.OwnerReference, clusterName string, predecessors ...types.UID) error {
	if obj.GetDeletionTimestamp() != nil {
		return nil
	}
	owner.Controller, owner.BlockOwnerDeletion = new(true), new(true)
	if err := Foreign(obj, owner, predecessors...); err != nil {
		return err
	}
	before := obj.GetOwnerReferences()
	after := withController(before, owner, predecessors)

	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	var ops []operation
	if !reflect.DeepEqual(before, after) {
		var expected any
		if len(before) > 0 {
			expected = before
		}
		ops = append(ops,
			operation{"test", "/metadata/ownerReferences", expected},
			operation{"add", "/metadata/ownerReferences", after})
	}
	switch labels := obj.GetLabels(); {
	case labels[clusterv1.ClusterNameLabel] == clusterName:
	case len(labels) == 0:
		ops = append(ops, operation{"add", "/metadata/labels", map[string]string{clusterv1.ClusterNameLabel: clusterName}})
	default:
		ops = append(ops, operation{"add", "/metadata/labels/cluster.x-k8s.io~1cluster-name", clusterName})
	}
	if len(ops) == 0 {
		return nil
	}
	data, err := json.Marshal(append([]operation{{"test", "/metadata/uid", obj.GetUID()}}, ops...))
	if err != nil {
		return err
	}
	if err := c.Patch(ctx, obj, client.RawPatch(types.JSONPatchType, data)); err != nil {
		return fmt.Errorf("make %s %q the owner of %s %q: %w", owner.Kind, owner.Name, obj.GetKind(), client.ObjectKeyFromObject(obj), err)
	}
	return nil
}

// Foreign returns an ErrForeign (errors.Is) when obj has a controller from whom owner may not take it; nil else.
func Foreign(obj *unstructured.Unstructured, owner metav1.OwnerReference, predecessors ...types.UID) error {
	have := metav1.GetControllerOfNoCopy(obj)
	if have == nil || have.UID == owner.UID || slices.Contains(predecessors, have.UID) || sameName(*have, owner) {
		return nil
	}
	return fmt.Errorf("%s %q is controlled by %s %q: %w", obj.GetKind(), client.ObjectKeyFromObject(obj), have.Kind, have.Name, ErrForeign)
}

// sameName tells that two references name one owner, whatever the UID.
func sameName(a, b metav1.OwnerReference) bool {
	return a.Kind == b.Kind && a.Name == b.Name && groupOf(a.APIVersion) == groupOf(b.APIVersion)
}

// withController returns owners with owner among them as the only controller.
func withController(owners []metav1.OwnerReference, owner metav1.OwnerReference, predecessors []types.UID) []metav1.OwnerReference {
	var out []metav1.OwnerReference
	placed := false
	for _, have := range owners {
		switch {
		case have.UID == owner.UID:
			out = append(out, owner)
			placed = true
		case slices.Contains(predecessors, have.UID), sameName(have, owner):
		default:
			out = append(out, have)
		}
	}
	if !placed {
		out = append(out, owner)
	}
	return out
}
