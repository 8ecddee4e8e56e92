package cluster

import (
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/millwright-dev/millwright/api/infrastructure/v1beta2"
	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/operator/vsphere/identity"
)

// setStatus writes a decision. provisioned never goes back: machines exist by then, and a vCenter that is away for a while
// does not unmake them.
func setStatus(cluster *infrav1.VSphereCluster, loginErr error, d decision) {
	cluster.Status.FailureDomains = d.failureDomains
	if d.provisioned {
		cluster.Status.Initialization.Provisioned = new(true)
	}
	setVCenterAvailable(cluster, loginErr)
	setEndpoint(cluster)
	setFailureDomains(cluster, d)
	conditions.Set(cluster, conditions.Summary(cluster, clusterv1.ReadyCondition,
		conditions.Reasons{True: clusterv1.ReadyReason, False: clusterv1.NotReadyReason, Unknown: clusterv1.ReadyUnknownReason},
		[]conditions.Part{
			{Type: infrav1.VCenterAvailableCondition},
			{Type: infrav1.ControlPlaneEndpointSetCondition},
			{Type: infrav1.FailureDomainsReadyCondition, Optional: true},
		}))
}

func setVCenterAvailable(cluster *infrav1.VSphereCluster, loginErr error) {
	if loginErr == nil {
		conditions.Set(cluster, conditions.True(infrav1.VCenterAvailableCondition, clusterv1.AvailableReason, ""))
		return
	}
	reason := identity.Reason(loginErr)
	if reason == "" {
		reason = infrav1.VCenterUnreachableReason
	}
	conditions.Set(cluster, conditions.False(infrav1.VCenterAvailableCondition, reason, "%s", loginErr.Error()))
}

func setEndpoint(cluster *infrav1.VSphereCluster) {
	if cluster.Spec.ControlPlaneEndpoint.IsSet() {
		conditions.Set(cluster, conditions.True(infrav1.ControlPlaneEndpointSetCondition, "Set", ""))
		return
	}
	conditions.Set(cluster, conditions.False(infrav1.ControlPlaneEndpointSetCondition, "NotSet",
		"spec.controlPlaneEndpoint needs a host and a port: set the address that kube-vip or a load balancer answers at"))
}

func setFailureDomains(cluster *infrav1.VSphereCluster, d decision) {
	switch {
	case cluster.Spec.FailureDomainSelector == nil:
		conditions.Delete(cluster, infrav1.FailureDomainsReadyCondition)
	case d.selectorErr != nil:
		conditions.Set(cluster, conditions.False(infrav1.FailureDomainsReadyCondition, clusterv1.NotReadyReason, "%s", d.selectorErr.Error()))
	case len(d.failureDomains) == 0:
		message := "no VSphereDeploymentZone matches failureDomainSelector: create one, or correct the selector"
		if len(d.skippedZones) > 0 {
			message = "no selected zone can be used: " + strings.Join(d.skippedZones, "; ")
		}
		conditions.Set(cluster, conditions.False(infrav1.FailureDomainsReadyCondition, clusterv1.NotReadyReason, "%s", message))
	case len(d.skippedZones) > 0:
		conditions.Set(cluster, conditions.False(infrav1.FailureDomainsReadyCondition, clusterv1.NotReadyReason,
			"left out: %s", strings.Join(d.skippedZones, "; ")))
	default:
		conditions.Set(cluster, conditions.True(infrav1.FailureDomainsReadyCondition, clusterv1.ReadyReason, ""))
	}
}
