package graph

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Load reads a cluster and all objects that belong to it.
func Load(ctx context.Context, c client.Client, cluster client.ObjectKey) (*Graph, error) {
	var objects []client.Object
	read := map[string]bool{}
	// The kinds of the providers are only known once the objects that refer to
	// them are; two rounds find them all.
	for range 2 {
		sources, err := Sources(c.RESTMapper(), cluster, objects)
		if err != nil {
			return nil, err
		}
		for _, source := range sources {
			gvk, err := c.GroupVersionKindFor(source.List)
			if err != nil {
				return nil, fmt.Errorf("read %T: %w", source.List, err)
			}
			if read[gvk.String()] {
				continue
			}
			read[gvk.String()] = true
			found, err := listAll(ctx, c, source)
			if err != nil {
				return nil, err
			}
			objects = append(objects, found...)
		}
	}
	return Build(c.Scheme(), cluster, objects)
}

func listAll(ctx context.Context, c client.Client, source Source) ([]client.Object, error) {
	var objects []client.Object
	err := Pages(ctx, c, source.List, func(page client.ObjectList) error {
		return meta.EachListItem(page, func(item runtime.Object) error {
			objects = append(objects, item.(client.Object))
			return nil
		})
	}, source.Options...)
	if source.Optional && err != nil && unavailable(err) {
		return nil, nil
	}
	return objects, err
}

// Sources names the lists that a cluster's graph is made of, as far as known
// holds objects that refer to a provider's kinds: call it again with what those
// lists brought.
func Sources(mapper meta.RESTMapper, cluster client.ObjectKey, known []client.Object) ([]Source, error) {
	labelled := []client.ListOption{
		client.InNamespace(cluster.Namespace),
		client.MatchingLabels{clusterv1.ClusterNameLabel: cluster.Name},
	}
	named := func(name string) []client.ListOption {
		return []client.ListOption{client.InNamespace(cluster.Namespace), client.MatchingFields{"metadata.name": name}}
	}
	sources := []Source{
		{List: &clusterv1.ClusterList{}, Options: named(cluster.Name)},
		{List: &clusterv1.MachineDeploymentList{}, Options: labelled},
		{List: &clusterv1.MachineSetList{}, Options: labelled},
		{List: &clusterv1.MachineList{}, Options: labelled},
		{List: &clusterv1.MachineHealthCheckList{}, Options: labelled, Optional: true},
		{List: &clusterv1.MachinePoolList{}, Options: labelled, Optional: true},
	}
	for _, kind := range providerKinds(known) {
		mapping, err := mapper.RESTMapping(kind.GroupKind)
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look up %s: %w", kind.GroupKind, err)
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(mapping.GroupVersionKind.GroupVersion().WithKind(mapping.GroupVersionKind.Kind + "List"))
		source := Source{List: list, Options: labelled, Optional: true}
		if kind.name != "" {
			source.Options = named(kind.name)
		}
		sources = append(sources, source)
	}
	return sources, nil
}

// providerKind is a kind that only the cluster's objects tell.
type providerKind struct {
	schema.GroupKind
	// name is set for kinds of which the cluster refers to one by name. Its
	// label comes only with the first reconciliation.
	name string
}

// providerKinds returns the kinds that the objects refer to: control planes,
// infrastructure and bootstrap configurations. A template's kind is the kind of
// what is cloned from it with "Template" behind (contract of providers).
func providerKinds(objects []client.Object) []providerKind {
	kinds := map[providerKind]bool{}
	add := func(ref clusterv1.ContractVersionedObjectReference, name string) {
		if ref.Kind != "" {
			gk := schema.GroupKind{Group: ref.APIGroup, Kind: strings.TrimSuffix(ref.Kind, "Template")}
			kinds[providerKind{gk, name}] = true
		}
	}
	machine := func(spec clusterv1.MachineSpec) {
		add(spec.InfrastructureRef, "")
		add(spec.Bootstrap.ConfigRef, "")
	}
	for _, obj := range objects {
		switch obj := obj.(type) {
		case *clusterv1.Cluster:
			add(obj.Spec.InfrastructureRef, obj.Spec.InfrastructureRef.Name)
			add(obj.Spec.ControlPlaneRef, obj.Spec.ControlPlaneRef.Name)
		case *clusterv1.MachineDeployment:
			machine(obj.Spec.Template.Spec)
		case *clusterv1.MachineSet:
			machine(obj.Spec.Template.Spec)
		case *clusterv1.MachinePool:
			machine(obj.Spec.Template.Spec)
		case *clusterv1.Machine:
			machine(obj.Spec)
		}
	}
	return slices.SortedFunc(maps.Keys(kinds), func(a, b providerKind) int {
		return cmp.Or(strings.Compare(a.GroupKind.String(), b.GroupKind.String()), strings.Compare(a.name, b.name))
	})
}
