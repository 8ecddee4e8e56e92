package machineset

import (
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/lifecycle"
)

// spreadOver returns the failure domains that a set's new Machines are spread over; none where they are not.
func spreadOver(set *clusterv1.MachineSet, cluster *clusterv1.Cluster) []string {
	if cluster == nil || !lifecycle.SpreadsDomains(set) {
		return nil
	}
	return domainsOf(cluster)
}

// domainsOf returns the names of a Cluster's failure domains. All are fit for workers.
func domainsOf(cluster *clusterv1.Cluster) []string {
	var names []string
	for _, domain := range cluster.Status.FailureDomains {
		names = append(names, domain.Name)
	}
	return names
}

// provisioned tells whether a Cluster's infrastructure is there. Before, nobody knows its failure domains.
func provisioned(cluster *clusterv1.Cluster) bool {
	return ptr.Deref(cluster.Status.Initialization.InfrastructureProvisioned, false)
}
