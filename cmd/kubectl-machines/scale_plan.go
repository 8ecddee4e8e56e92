package main

import (
	"encoding/json"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// maxWorkers is the number of nodes that Kubernetes is tested with
	// (kubernetes.io, "Considerations for large clusters").
	maxWorkers = 5000
	// maxControlPlane is the largest etcd cluster that etcd's FAQ recommends.
	maxControlPlane = 7
)

// scalePlan is what scaling comes to, before anything is written.
type scalePlan struct {
	from     int32
	patch    []byte
	warnings []string
}

// planScale decides whether target may be scaled to replicas. current is what
// the user believes it to have now, -1 for no belief.
func planScale(target target, obj client.Object, cluster *clusterv1.Cluster, replicas, current int32) (scalePlan, error) {
	plan := scalePlan{from: desired(obj)}
	if err := refuseScale(target, obj, cluster, replicas); err != nil {
		return plan, err
	}
	if current >= 0 && current != plan.from {
		return plan, fmt.Errorf("%s has %d replicas, not %d as --current-replicas says: look at it again before you scale", target, plan.from, current)
	}
	plan.warnings = scaleWarnings(target, obj, cluster, replicas)

	patch := map[string]any{"spec": map[string]any{"replicas": replicas}}
	if current >= 0 {
		// The server refuses the patch when the object has changed since it was read.
		patch["metadata"] = map[string]any{"resourceVersion": obj.GetResourceVersion()}
	}
	var err error
	if plan.patch, err = json.Marshal(patch); err != nil {
		return plan, fmt.Errorf("scale %s: encode the patch: %w", target, err)
	}
	return plan, nil
}

func refuseScale(target target, obj client.Object, cluster *clusterv1.Cluster, replicas int32) error {
	switch {
	case obj.GetDeletionTimestamp() != nil:
		return fmt.Errorf("%s is being deleted: it cannot be scaled", target)
	case cluster.DeletionTimestamp != nil:
		return fmt.Errorf("cluster %q is being deleted: %s cannot be scaled", cluster.Name, target)
	}
	if _, owned := obj.GetLabels()[clusterv1.ClusterTopologyOwnedLabel]; owned {
		field := topologyField(obj, cluster)
		return fmt.Errorf("%s belongs to the topology of cluster %q, which would undo the change: set %s of the Cluster (kubectl edit cluster %s -n %s)",
			target, cluster.Name, field, cluster.Name, cluster.Namespace)
	}
	if controller := metav1.GetControllerOf(obj); controller != nil && controller.Kind == kindDeployment.Kind {
		return fmt.Errorf("%s belongs to MachineDeployment %s, which would undo the change: scale %s instead", target, controller.Name, controller.Name)
	}
	if controlPlane, ok := obj.(*controlplanev1.KubeadmControlPlane); ok {
		return refuseControlPlane(target, controlPlane, replicas)
	}
	if replicas > maxWorkers {
		return fmt.Errorf("%s: %d replicas are too many: Kubernetes is made for %d nodes a cluster: spread them over several clusters", target, replicas, maxWorkers)
	}
	return nil
}

func refuseControlPlane(target target, controlPlane *controlplanev1.KubeadmControlPlane, replicas int32) error {
	external := controlPlane.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.External.IsDefined()
	switch {
	case replicas == 0:
		return fmt.Errorf("%s: a control plane needs a machine: delete the cluster if it is not wanted any more", target)
	case replicas > maxControlPlane:
		return fmt.Errorf("%s: %d replicas are too many: every write waits for a majority of them; take %d at most", target, replicas, maxControlPlane)
	case replicas%2 == 0 && !external:
		return fmt.Errorf("%s: the number must be odd, not %d: each machine runs a member of etcd, and %d members survive no more losses than %d: take %d or %d",
			target, replicas, replicas, replicas-1, replicas-1, replicas+1)
	}
	return nil
}

// topologyField is the field of the Cluster that holds the number of replicas.
func topologyField(obj client.Object, cluster *clusterv1.Cluster) string {
	if _, ok := obj.(*controlplanev1.KubeadmControlPlane); ok {
		return "spec.topology.controlPlane.replicas"
	}
	name := obj.GetLabels()[clusterv1.ClusterTopologyMachineDeploymentNameLabel]
	for i, deployment := range cluster.Spec.Topology.Workers.MachineDeployments {
		if deployment.Name == name {
			return fmt.Sprintf("spec.topology.workers.machineDeployments[%d].replicas, the one named %q,", i, name)
		}
	}
	return "spec.topology.workers.machineDeployments[].replicas"
}

func scaleWarnings(target target, obj client.Object, cluster *clusterv1.Cluster, replicas int32) []string {
	var warnings []string
	if isPaused(cluster, cluster) {
		warnings = append(warnings, fmt.Sprintf("cluster %q is paused: nothing happens until it is resumed", cluster.Name))
	} else if isPaused(cluster, obj) {
		warnings = append(warnings, fmt.Sprintf("%s is paused: nothing happens until it is resumed", target))
	}
	if text := autoscalerWarning(target, obj, replicas); text != "" {
		warnings = append(warnings, text)
	}
	return warnings
}

// autoscalerWarning tells that cluster-autoscaler keeps the number of replicas.
func autoscalerWarning(target target, obj client.Object, replicas int32) string {
	bound := func(annotation string) (int64, bool) {
		value, err := strconv.ParseInt(obj.GetAnnotations()[annotation], 10, 32)
		return value, err == nil
	}
	low, hasLow := bound(clusterv1.AutoscalerMinSizeAnnotation)
	high, hasHigh := bound(clusterv1.AutoscalerMaxSizeAnnotation)
	if !hasLow || !hasHigh {
		return ""
	}
	if n := int64(replicas); n < low || n > high {
		return fmt.Sprintf("%s is kept between %d and %d replicas by cluster-autoscaler, which will undo %d: change its annotations %s and %s",
			target, low, high, replicas, clusterv1.AutoscalerMinSizeAnnotation, clusterv1.AutoscalerMaxSizeAnnotation)
	}
	return fmt.Sprintf("%s is kept between %d and %d replicas by cluster-autoscaler, which may change %d again", target, low, high, replicas)
}
