package contract

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// RequestsFor lists the objects of a namespace into list and returns requests for those that concern returns true for; T
// is the pointer type of the list's items. An event handler has nobody to return an error to: one is logged.
func RequestsFor[T client.Object](ctx context.Context, c client.Reader, list client.ObjectList, namespace string, concerns func(T) bool) []reconcile.Request {
	var out []reconcile.Request
	// Items are only looked at, so the cache need not copy them.
	err := c.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy)
	if err == nil {
		err = meta.EachListItem(list, func(item runtime.Object) error {
			if obj := item.(T); concerns(obj) {
				out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(obj)})
			}
			return nil
		})
	}
	if err != nil {
		log.FromContext(ctx).Error(err, "Find the objects that an event concerns", "list", fmt.Sprintf("%T", list), "namespace", namespace)
		return nil
	}
	return out
}

// ReferenceKey is the value under which an index keeps those that refer to an object.
func ReferenceKey(ref clusterv1.ContractVersionedObjectReference) string {
	return ref.GroupKind().String() + "/" + ref.Name
}

// ReferenceKeyOf is the ReferenceKey of references to obj, which must tell its kind.
func ReferenceKeyOf(obj client.Object) string {
	gk := obj.GetObjectKind().GroupVersionKind().GroupKind()
	return ReferenceKey(clusterv1.ContractVersionedObjectReference{APIGroup: gk.Group, Kind: gk.Kind, Name: obj.GetName()})
}

// IndexReferences makes a function of an index out of one that returns the references of an object, and of what of a
// reference is kept: ReferenceKey, or ReferenceCRD.
func IndexReferences[T client.Object](references func(T) []clusterv1.ContractVersionedObjectReference, key func(clusterv1.ContractVersionedObjectReference) string) client.IndexerFunc {
	return func(obj client.Object) []string {
		var out []string
		for _, ref := range references(obj.(T)) {
			out = append(out, key(ref))
		}
		return out
	}
}

// ReferenceCRD is the name of the CRD of a reference's kind.
func ReferenceCRD(ref clusterv1.ContractVersionedObjectReference) string {
	return CRDName(ref.GroupKind())
}
