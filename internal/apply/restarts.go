package apply

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Before is the object as it is live, nil when there is none. It is not to be changed.
func (c Change) Before() *unstructured.Unstructured { return c.live }

// After is the object as the server would make it; where the server cannot tell
// yet, as it is applied. It is not to be changed.
func (c Change) After() *unstructured.Unstructured {
	if c.merged != nil {
		return c.merged
	}
	return c.object
}

// Restarts tells whether carrying the change out replaces running pods.
func (c Change) Restarts() bool {
	if c.live == nil || c.Action == ActionUnchanged {
		return false
	}
	switch c.ID.GroupKind().String() {
	case "DaemonSet.apps", "Deployment.apps", "StatefulSet.apps":
	default:
		return false
	}
	return c.Action == ActionRecreate || !equality.Semantic.DeepEqual(podTemplate(c.live), podTemplate(c.After()))
}

func podTemplate(object *unstructured.Unstructured) any {
	template, _, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "template")
	return template
}
