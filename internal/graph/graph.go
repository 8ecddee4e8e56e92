package graph

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Object is an object of a cluster with its kind, which typed objects lose when
// they are read, and what it owns.
type Object struct {
	client.Object
	Kind  schema.GroupVersionKind
	Owner *Object
	Owned []*Object
}

// Graph is what belongs to one cluster.
type Graph struct {
	Cluster *Object
	// Objects are all of them, the cluster included, sorted by kind and name.
	Objects []*Object

	byName map[name]*Object
}

type name struct {
	schema.GroupKind
	name string
}

// Build makes the graph of a cluster from its objects. The error is a NotFound
// when the cluster is not among them.
func Build(scheme *runtime.Scheme, cluster client.ObjectKey, objects []client.Object) (*Graph, error) {
	g := &Graph{byName: map[name]*Object{}}
	byUID := map[types.UID]*Object{}
	for _, obj := range objects {
		gvk, err := apiutil.GVKForObject(obj, scheme)
		if err != nil {
			return nil, fmt.Errorf("graph of cluster %q: %w", cluster.Name, err)
		}
		o := &Object{Object: obj, Kind: gvk}
		g.Objects = append(g.Objects, o)
		g.byName[name{gvk.GroupKind(), obj.GetName()}] = o
		if uid := obj.GetUID(); uid != "" {
			byUID[uid] = o
		}
		if _, ok := obj.(*clusterv1.Cluster); ok && obj.GetName() == cluster.Name {
			g.Cluster = o
		}
	}
	if g.Cluster == nil {
		return nil, apierrors.NewNotFound(clusterv1.GroupVersion.WithResource("clusters").GroupResource(), cluster.Name)
	}
	slices.SortFunc(g.Objects, func(a, b *Object) int {
		return cmp.Or(strings.Compare(a.Kind.Kind, b.Kind.Kind), strings.Compare(a.GetName(), b.GetName()))
	})
	for _, o := range g.Objects {
		o.Owner = ownerOf(o, byUID)
		if o.Owner != nil {
			o.Owner.Owned = append(o.Owner.Owned, o)
		}
	}
	return g, nil
}

// ownerOf returns the controller of o, else its first owner in the graph.
func ownerOf(o *Object, byUID map[types.UID]*Object) *Object {
	if controller := metav1.GetControllerOf(o); controller != nil {
		if owner := byUID[controller.UID]; owner != nil {
			return owner
		}
	}
	for _, ref := range o.GetOwnerReferences() {
		if owner := byUID[ref.UID]; owner != nil {
			return owner
		}
	}
	return nil
}

// Lookup returns the object that ref names, or nil.
func (g *Graph) Lookup(ref clusterv1.ContractVersionedObjectReference) *Object {
	return g.byName[name{schema.GroupKind{Group: ref.APIGroup, Kind: ref.Kind}, ref.Name}]
}

// Spec returns the cluster as its type.
func (g *Graph) Spec() *clusterv1.Cluster { return g.Cluster.Object.(*clusterv1.Cluster) }

// OfKind returns the objects of a core Cluster API kind, sorted by name.
func (g *Graph) OfKind(kind string) []*Object {
	var found []*Object
	for _, o := range g.Objects {
		if o.Kind.Kind == kind && o.Kind.Group == clusterv1.GroupVersion.Group {
			found = append(found, o)
		}
	}
	return found
}

// Machines returns the Machines that are owned by o, directly or not.
func (g *Graph) Machines(o *Object) []*Object {
	var machines []*Object
	for _, owned := range o.Owned {
		if _, ok := owned.Object.(*clusterv1.Machine); ok {
			machines = append(machines, owned)
			continue
		}
		machines = append(machines, g.Machines(owned)...)
	}
	slices.SortFunc(machines, func(a, b *Object) int { return strings.Compare(a.GetName(), b.GetName()) })
	return machines
}

// Find returns the object of that kind and name, or nil.
func (g *Graph) Find(kind schema.GroupKind, objectName string) *Object {
	return g.byName[name{kind, objectName}]
}
