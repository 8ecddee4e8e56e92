package apply

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Set is what a cluster shall have under one name.
type Set struct {
	// Name of the add-on; there is one set of a name in a cluster.
	Name    string
	Version string
	// Parameters are kept with the set so that it can be rendered again.
	Parameters map[string]any
	// Customization is what else it takes to render it again, in the words of who renders.
	Customization string
	Objects       []*unstructured.Unstructured
	// Retain tells which objects are never pruned, beyond those that never are; nil for none.
	Retain func(ID) bool
	// Recreate tells which objects may be deleted and created anew where the server refuses to change a field; nil for none.
	Recreate func(ID) bool
	// Moved tells which leavers have a successor of another name in the set that cannot run beside them: they are
	// pruned before the set is waited for, by the same rules; nil for none.
	Moved func(ID) bool
	// Derived tells which objects were made from what is live, so that taking their fields over loses nothing; nil for none.
	Derived func(ID) bool
}

// stage is when in an apply an object's turn is.
type stage int

const (
	// stageDefinitions holds what others need to exist: CRDs and Namespaces.
	stageDefinitions stage = iota
	stageRest
	// stageCustom holds objects of the kinds that the set's own CRDs define.
	stageCustom
	stageCount
)

// prepare copies, normalizes and labels the objects of a set. The input may not
// name an object twice, nor claim to be part of a set itself.
func (s Set) prepare() ([]*unstructured.Unstructured, error) {
	seen := map[ID]bool{}
	prepared := make([]*unstructured.Unstructured, 0, len(s.Objects))
	for _, original := range s.Objects {
		object := original.DeepCopy()
		id := IDOf(object)
		switch {
		case id.Kind == "" || id.Name == "":
			return nil, fmt.Errorf("set %s: an object has no kind or no name: %v", s.Name, id)
		case seen[id]:
			return nil, fmt.Errorf("set %s: %s is there twice", s.Name, id.Full())
		}
		seen[id] = true
		labels := object.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		if _, ok := labels[partOfLabel]; ok {
			return nil, fmt.Errorf("set %s: %s already has the label %s: remove it from the bundle", s.Name, id.Full(), partOfLabel)
		}
		Normalize(object)
		labels[partOfLabel] = setID(s.Name)
		object.SetLabels(labels)
		prepared = append(prepared, object)
	}
	return prepared, nil
}

// definedKinds lists the kinds that the CRDs among objects define.
func definedKinds(objects []*unstructured.Unstructured) []schema.GroupKind {
	var kinds []schema.GroupKind
	for _, object := range objects {
		if kind, ok := definedKind(object); ok {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

func stageOf(object *unstructured.Unstructured, defined []schema.GroupKind) stage {
	kind := IDOf(object).GroupKind()
	switch {
	case kind == crdKind || kind == namespaceKind:
		return stageDefinitions
	case slices.Contains(defined, kind):
		return stageCustom
	default:
		return stageRest
	}
}
