package main

import (
	"context"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/cli"
)

var clusterColumns = cli.Columns{
	{Name: "Name"}, {Name: "Phase"}, {Name: "Available"}, {Name: "Control-Plane"}, {Name: "Workers"},
	{Name: "Version"}, {Name: "Infrastructure"}, {Name: "Age"},
	{Name: "Endpoint", Wide: true}, {Name: "Paused", Wide: true}, {Name: "Class", Wide: true},
}

// clusterTable shows clusters; versions are those of the control planes, by
// namespace and name of the cluster, for clusters whose status has none.
func clusterTable(clusters []client.Object, versions map[client.ObjectKey]string, now time.Time) *metav1.Table {
	table := clusterColumns.Table()
	for _, obj := range clusters {
		cluster := obj.(*clusterv1.Cluster)
		controlPlane, workers := "?/?", "?/?"
		if s := cluster.Status.ControlPlane; s != nil {
			controlPlane = cli.Count(s.ReadyReplicas, s.DesiredReplicas)
		}
		if s := cluster.Status.Workers; s != nil {
			workers = cli.Count(s.ReadyReplicas, s.DesiredReplicas)
		}
		version := statusVersions(cluster)
		if version == "" {
			version = versions[client.ObjectKeyFromObject(cluster)]
		}
		cli.AddRow(table, cluster,
			cluster.Name, phase(cluster.Status.Phase, cluster), conditionStatus(cluster.Status.Conditions, clusterv1.AvailableCondition),
			controlPlane, workers, version, cluster.Spec.InfrastructureRef.Kind, cli.Age(now, cluster.CreationTimestamp.Time),
			endpoint(cluster), pausedWord(cluster), cluster.Spec.Topology.ClassRef.Name)
	}
	return table
}

// statusVersions are the versions that the control plane runs: two during an upgrade.
func statusVersions(cluster *clusterv1.Cluster) string {
	if cluster.Status.ControlPlane == nil {
		return cluster.Spec.Topology.Version
	}
	var versions []string
	for _, v := range cluster.Status.ControlPlane.Versions {
		versions = append(versions, v.Version)
	}
	if len(versions) == 0 {
		return cluster.Spec.Topology.Version
	}
	slices.Sort(versions)
	return strings.Join(versions, ",")
}

// controlPlaneVersions reads what clusters without a version in their status ask
// of their control planes: one list for each kind. A kind that cannot be read
// leaves the version open; the clusters are worth showing without it.
func controlPlaneVersions(ctx context.Context, c client.Client, clusters []client.Object) map[client.ObjectKey]string {
	wanted := map[schema.GroupKind]map[client.ObjectKey]client.ObjectKey{}
	for _, obj := range clusters {
		cluster := obj.(*clusterv1.Cluster)
		ref := cluster.Spec.ControlPlaneRef
		if statusVersions(cluster) != "" || ref.Kind == "" {
			continue
		}
		gk := schema.GroupKind{Group: ref.APIGroup, Kind: ref.Kind}
		if wanted[gk] == nil {
			wanted[gk] = map[client.ObjectKey]client.ObjectKey{}
		}
		wanted[gk][client.ObjectKey{Namespace: cluster.Namespace, Name: ref.Name}] = client.ObjectKeyFromObject(cluster)
	}
	versions := map[client.ObjectKey]string{}
	for gk, clusterOf := range wanted {
		mapping, err := c.RESTMapper().RESTMapping(gk)
		if err != nil {
			continue
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(mapping.GroupVersionKind.GroupVersion().WithKind(gk.Kind + "List"))
		if err := c.List(ctx, list, client.InNamespace(onlyNamespace(clusters))); err != nil {
			continue
		}
		for _, item := range list.Items {
			version, _, _ := unstructured.NestedString(item.Object, "spec", "version")
			if cluster, ok := clusterOf[client.ObjectKeyFromObject(&item)]; ok {
				versions[cluster] = version
			}
		}
	}
	return versions
}

// onlyNamespace is the namespace that all objects are in, or empty for several.
func onlyNamespace(objects []client.Object) string {
	for _, obj := range objects {
		if obj.GetNamespace() != objects[0].GetNamespace() {
			return metav1.NamespaceAll
		}
	}
	return objects[0].GetNamespace()
}

func endpoint(cluster *clusterv1.Cluster) string {
	if !cluster.Spec.ControlPlaneEndpoint.IsValid() {
		return ""
	}
	return cluster.Spec.ControlPlaneEndpoint.String()
}

func pausedWord(cluster *clusterv1.Cluster) string {
	if isPaused(cluster, cluster) {
		return "True"
	}
	return "False"
}

// isPaused tells whether controllers leave an object of the cluster alone.
func isPaused(cluster *clusterv1.Cluster, obj client.Object) bool {
	_, annotated := obj.GetAnnotations()[clusterv1.PausedAnnotation]
	return annotated || (cluster.Spec.Paused != nil && *cluster.Spec.Paused)
}

// phase is what an object's status says; an object that nobody has looked at has none.
func phase(reported string, obj client.Object) string {
	switch {
	case obj.GetDeletionTimestamp() != nil:
		return string(clusterv1.ClusterPhaseDeleting)
	case reported == "":
		return "Unknown"
	}
	return reported
}

func conditionStatus(conditions []metav1.Condition, conditionType string) string {
	for _, c := range conditions {
		if c.Type == conditionType {
			return string(c.Status)
		}
	}
	return string(metav1.ConditionUnknown)
}
