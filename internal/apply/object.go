package apply

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ID is what an object is called in a cluster, whatever version it is read at.
type ID struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// IDOf returns the identity of an object.
func IDOf(object *unstructured.Unstructured) ID {
	gk := object.GroupVersionKind().GroupKind()
	return ID{Group: gk.Group, Kind: gk.Kind, Namespace: object.GetNamespace(), Name: object.GetName()}
}

// GroupKind is the kind without a version.
func (id ID) GroupKind() schema.GroupKind { return schema.GroupKind{Group: id.Group, Kind: id.Kind} }

// String names the object as kubectl's output does: daemonset.apps/calico-node.
func (id ID) String() string {
	kind := strings.ToLower(id.Kind)
	if id.Group != "" {
		kind += "." + id.Group
	}
	return kind + "/" + id.Name
}

// Full is String with the namespace, for messages.
func (id ID) Full() string {
	if id.Namespace == "" {
		return id.String()
	}
	return id.String() + " in namespace " + id.Namespace
}

func compareIDs(a, b ID) int {
	return cmp.Or(
		cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
	)
}

var (
	crdKind       = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
	namespaceKind = schema.GroupKind{Kind: "Namespace"}
	claimKind     = schema.GroupKind{Kind: "PersistentVolumeClaim"}
)

// definedKind is the kind that a CustomResourceDefinition defines.
func definedKind(object *unstructured.Unstructured) (schema.GroupKind, bool) {
	if IDOf(object).GroupKind() != crdKind {
		return schema.GroupKind{}, false
	}
	group, _, _ := unstructured.NestedString(object.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(object.Object, "spec", "names", "kind")
	return schema.GroupKind{Group: group, Kind: kind}, true
}
