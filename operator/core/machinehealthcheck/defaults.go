package machinehealthcheck

import (
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// setDefaults fills in what upstream's webhook would (contract page, "Defaults").
func setDefaults(check *clusterv1.MachineHealthCheck) {
	check.Labels = labels.Merge(check.Labels, labels.Set{clusterv1.ClusterNameLabel: check.Spec.ClusterName})
	if check.Spec.Checks.NodeStartupTimeoutSeconds == nil {
		check.Spec.Checks.NodeStartupTimeoutSeconds = ptr.To(clusterv1.DefaultNodeStartupTimeoutSeconds)
	}
	triggerIf := &check.Spec.Remediation.TriggerIf
	if triggerIf.UnhealthyLessThanOrEqualTo == nil && triggerIf.UnhealthyInRange == "" {
		triggerIf.UnhealthyLessThanOrEqualTo = ptr.To(intstr.FromString("100%"))
	}
}
