package machinedeployment

import (
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/millwright-dev/millwright/internal/contract"
	"github.com/millwright-dev/millwright/internal/lifecycle"
)

// setDefaults fills in what upstream's webhook would (contract page, "Defaults"), and our finalizer. An error concerns
// replicas alone: all else is set. before is the number of replicas until now, nil for a new deployment.
func setDefaults(deployment *clusterv1.MachineDeployment, before *int32) error {
	spec := &deployment.Spec
	needed := labels.Set{clusterv1.ClusterNameLabel: spec.ClusterName}
	deployment.Labels = labels.Merge(deployment.Labels, needed)
	if len(spec.Selector.MatchLabels)+len(spec.Selector.MatchExpressions) == 0 {
		needed[clusterv1.MachineDeploymentNameLabel] = contract.LabelValue(deployment.Name)
	}
	// A selector that was defaulted before stays, and so must the label that it looks for.
	if name := contract.LabelValue(deployment.Name); spec.Selector.MatchLabels[clusterv1.MachineDeploymentNameLabel] == name {
		needed[clusterv1.MachineDeploymentNameLabel] = name
	}
	spec.Selector.MatchLabels = labels.Merge(spec.Selector.MatchLabels, needed)
	spec.Template.Labels = labels.Merge(spec.Template.Labels, needed)
	spec.Template.Spec.Version = lifecycle.NormalizeVersion(spec.Template.Spec.Version)
	if spec.Deletion.Order == "" {
		spec.Deletion.Order = clusterv1.RandomMachineSetDeletionOrder
	}

	strategy := &spec.Rollout.Strategy
	if strategy.Type == "" {
		strategy.Type = clusterv1.RollingUpdateMachineDeploymentStrategyType
	}
	if strategy.Type == clusterv1.RollingUpdateMachineDeploymentStrategyType {
		if strategy.RollingUpdate.MaxSurge == nil {
			strategy.RollingUpdate.MaxSurge = ptr.To(intstr.FromInt32(1))
		}
		if strategy.RollingUpdate.MaxUnavailable == nil {
			strategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromInt32(0))
		}
	}
	controllerutil.AddFinalizer(deployment, clusterv1.MachineDeploymentFinalizer)

	if spec.Replicas == nil {
		replicas, err := lifecycle.DefaultReplicas(deployment.Annotations, before)
		if err != nil {
			return err
		}
		spec.Replicas = &replicas
	}
	return nil
}
