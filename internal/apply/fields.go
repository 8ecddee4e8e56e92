package apply

import (
	"crypto/sha256"
	"encoding/hex"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// FieldManager is who owns what this package applies.
const FieldManager = "millwright-addons"

// ownedDigest condenses the fields that we own on a live object; empty when we own none.
func ownedDigest(entries []metav1.ManagedFieldsEntry) string {
	for _, entry := range entries {
		if entry.Manager != FieldManager || entry.Operation != metav1.ManagedFieldsOperationApply || entry.Subresource != "" || entry.FieldsV1 == nil {
			continue
		}
		sum := sha256.Sum256(entry.FieldsV1.GetRawBytes())
		// 64 bits tell a change; nobody gains by making two alike.
		return hex.EncodeToString(sum[:8])
	}
	return ""
}

// sameObject tells whether applying would leave the live object as it is.
// Ownership counts: a field whose value is right but not ours yet is a change.
func sameObject(live, merged *unstructured.Unstructured) bool {
	return equality.Semantic.DeepEqual(settled(live), settled(merged))
}

// settled is an object without what moves by itself.
func settled(object *unstructured.Unstructured) map[string]any {
	stripped := object.DeepCopy()
	delete(stripped.Object, "status")
	stripped.SetResourceVersion("")
	stripped.SetGeneration(0)
	var entries []metav1.ManagedFieldsEntry
	for _, entry := range stripped.GetManagedFields() {
		if entry.Subresource != "" {
			continue
		}
		entry.Time = nil
		entries = append(entries, entry)
	}
	stripped.SetManagedFields(entries)
	return stripped.Object
}
