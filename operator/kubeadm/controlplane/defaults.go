package controlplane

import (
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/millwright-dev/millwright/internal/lifecycle"
)

// setDefaults fills in what upstream's webhook would (contract page, "Defaults"), and our finalizer.
func setDefaults(controlPlane *controlplanev1.KubeadmControlPlane, cluster *clusterv1.Cluster) {
	spec := &controlPlane.Spec
	controlPlane.Labels = labels.Merge(controlPlane.Labels, labels.Set{clusterv1.ClusterNameLabel: cluster.Name})
	if spec.Replicas == nil {
		spec.Replicas = ptr.To[int32](1)
	}
	spec.Version = lifecycle.NormalizeVersion(spec.Version)
	strategy := &spec.Rollout.Strategy
	if strategy.Type == "" {
		strategy.Type = controlplanev1.RollingUpdateStrategyType
	}
	if strategy.Type == controlplanev1.RollingUpdateStrategyType && strategy.RollingUpdate.MaxSurge == nil {
		strategy.RollingUpdate.MaxSurge = ptr.To(intstr.FromInt32(1))
	}
	controllerutil.AddFinalizer(controlPlane, controlplanev1.KubeadmControlPlaneFinalizer)
}
