package machineset

import (
	"k8s.io/apimachinery/pkg/labels"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/millwright-dev/millwright/internal/contract"
	"github.com/millwright-dev/millwright/internal/lifecycle"
)

// setDefaults fills in what upstream's webhook would (contract page, "Defaults"), and our finalizer. An error concerns
// replicas alone: all else is set.
func setDefaults(set *clusterv1.MachineSet) error {
	spec := &set.Spec
	needed := labels.Set{clusterv1.ClusterNameLabel: spec.ClusterName}
	set.Labels = labels.Merge(set.Labels, needed)
	if len(spec.Selector.MatchLabels)+len(spec.Selector.MatchExpressions) == 0 {
		needed[clusterv1.MachineSetNameLabel] = contract.LabelValue(set.Name)
	}
	spec.Selector.MatchLabels = labels.Merge(spec.Selector.MatchLabels, needed)
	spec.Template.Labels = labels.Merge(spec.Template.Labels, needed)
	spec.Template.Spec.Version = lifecycle.NormalizeVersion(spec.Template.Spec.Version)
	if spec.Deletion.Order == "" {
		spec.Deletion.Order = clusterv1.RandomMachineSetDeletionOrder
	}
	controllerutil.AddFinalizer(set, clusterv1.MachineSetFinalizer)

	if spec.Replicas == nil {
		replicas, err := lifecycle.DefaultReplicas(set.Annotations, set.Status.Replicas)
		if err != nil {
			return err
		}
		spec.Replicas = &replicas
	}
	return nil
}
