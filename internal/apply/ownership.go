package apply

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// adoptable lists, of the managers from whom fields are taken, those that own
// fields of a live object in the version that the set applies. A field that only
// they own would otherwise stay for ever once the set no longer has it.
func adoptable(live *unstructured.Unstructured, takeFrom []string) []string {
	var names []string
	for _, entry := range live.GetManagedFields() {
		if adopts(entry, live, takeFrom) && !slices.Contains(names, entry.Manager) {
			names = append(names, entry.Manager)
		}
	}
	return names
}

func adopts(entry metav1.ManagedFieldsEntry, live *unstructured.Unstructured, managers []string) bool {
	return entry.Manager != FieldManager && entry.Subresource == "" && entry.APIVersion == live.GetAPIVersion() &&
		slices.Contains(managers, entry.Manager)
}

func isOurs(entry metav1.ManagedFieldsEntry) bool {
	return entry.Manager == FieldManager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == ""
}

// adopted is who owns what once the managers' fields are the set's.
func adopted(live *unstructured.Unstructured, managers []string) ([]metav1.ManagedFieldsEntry, error) {
	var others []metav1.ManagedFieldsEntry
	owned := fieldpath.NewSet()
	for _, entry := range live.GetManagedFields() {
		if !isOurs(entry) && !adopts(entry, live, managers) {
			others = append(others, entry)
			continue
		}
		fields, err := fieldsOf(entry)
		if err != nil {
			return nil, err
		}
		owned = owned.Union(fields)
	}
	content, err := owned.ToJSON()
	if err != nil {
		return nil, err
	}
	return append(others, metav1.ManagedFieldsEntry{
		Manager: FieldManager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: live.GetAPIVersion(),
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(string(content)),
	}), nil
}

// withoutRelinquished is merged, the outcome of an apply beside other managers,
// as it would be were their fields the set's before: without the fields that then
// nobody owns. The server does the same when an applier leaves a field out.
func withoutRelinquished(live, merged *unstructured.Unstructured, managers []string) (*unstructured.Unstructured, error) {
	before, after := fieldpath.NewSet(), fieldpath.NewSet()
	for _, entry := range live.GetManagedFields() {
		if isOurs(entry) || adopts(entry, live, managers) {
			fields, err := fieldsOf(entry)
			if err != nil {
				return nil, err
			}
			before = before.Union(fields)
		}
	}
	for _, entry := range merged.GetManagedFields() {
		if adopts(entry, live, managers) {
			continue
		}
		fields, err := fieldsOf(entry)
		if err != nil {
			return nil, err
		}
		after = after.Union(fields)
	}
	rest := merged.DeepCopy()
	strip(rest.Object, before.Difference(after), after)
	return rest, nil
}

func fieldsOf(entry metav1.ManagedFieldsEntry) (*fieldpath.Set, error) {
	fields := fieldpath.NewSet()
	if entry.FieldsV1 == nil {
		return fields, nil
	}
	if err := fields.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())); err != nil {
		return nil, fmt.Errorf("read the fields of manager %q: %w", entry.Manager, err)
	}
	return fields, nil
}

// strip removes the fields of gone from a value, but none around a field of kept.
func strip(value any, gone, kept *fieldpath.Set) any {
	gone.Members.Iterate(func(element fieldpath.PathElement) {
		if !within(kept, element) {
			value = drop(value, element)
		}
	})
	gone.Children.Iterate(func(element fieldpath.PathElement) {
		inner, _ := gone.Children.Get(element)
		keptInner, ok := kept.Children.Get(element)
		if !ok {
			keptInner = fieldpath.NewSet()
		}
		if element.FieldName != nil && !within(kept, element) {
			// A struct of which nobody owns anything goes as a whole.
			value = drop(value, element)
			return
		}
		value = replace(value, element, func(child any) any { return strip(child, inner, keptInner) })
	})
	return value
}

// within tells whether a set has an element, or anything below it.
func within(set *fieldpath.Set, element fieldpath.PathElement) bool {
	inner, ok := set.Children.Get(element)
	return set.Members.Has(element) || ok && !inner.Empty()
}

// drop removes an element from a map or a list.
func drop(value any, element fieldpath.PathElement) any {
	switch value := value.(type) {
	case map[string]any:
		if element.FieldName != nil {
			delete(value, *element.FieldName)
		}
	case []any:
		if i := indexOf(value, element); i >= 0 {
			return slices.Delete(value, i, i+1)
		}
	}
	return value
}

// replace puts what change makes of an element in its place.
func replace(value any, element fieldpath.PathElement, change func(any) any) any {
	switch value := value.(type) {
	case map[string]any:
		if element.FieldName != nil {
			if child, ok := value[*element.FieldName]; ok {
				value[*element.FieldName] = change(child)
			}
		}
	case []any:
		if i := indexOf(value, element); i >= 0 {
			value[i] = change(value[i])
		}
	}
	return value
}

// indexOf finds an element of a list by its key or its value; -1 when it is not there.
func indexOf(list []any, element fieldpath.PathElement) int {
	return slices.IndexFunc(list, func(item any) bool {
		switch {
		case element.Value != nil:
			return sameJSON(item, (*element.Value).Unstructured())
		case element.Key != nil:
			fields, ok := item.(map[string]any)
			for _, key := range *element.Key {
				ok = ok && sameJSON(fields[key.Name], key.Value.Unstructured())
			}
			return ok
		}
		return false
	})
}

// sameJSON compares scalars whatever Go type a number was read as.
func sameJSON(a, b any) bool {
	left, errLeft := json.Marshal(a)
	right, errRight := json.Marshal(b)
	return errLeft == nil && errRight == nil && bytes.Equal(left, right)
}
