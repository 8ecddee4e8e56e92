package bundle

import (
	"fmt"
	"slices"
	"strings"
)

// factPrefix starts the keys of addon-parameters that are filled from the cluster.
const factPrefix = "cluster."

// Facts are what a bundle may know of the cluster that it is rendered for. An
// empty one is not known; a bundle that uses it cannot be rendered.
type Facts struct {
	// Name is the Cluster's name, or kubeadm's clusterName.
	Name string
	// KubernetesVersion is that of the API server, such as v1.37.2.
	KubernetesVersion string
	// PodCIDR and ServiceCIDR are the first range of their family list.
	PodCIDR     string
	ServiceCIDR string
	// DNSIP is the address of the DNS Service.
	DNSIP string
	// Domain is the DNS domain of Services, such as cluster.local.
	Domain string
	// ControlPlaneHost and ControlPlanePort are where nodes reach the API server.
	ControlPlaneHost string
	ControlPlanePort string
}

// values gives the facts the names by which bundles ask for them.
func (f Facts) values() map[string]string {
	return map[string]string{
		factPrefix + "name":              f.Name,
		factPrefix + "kubernetesVersion": f.KubernetesVersion,
		factPrefix + "podCIDR":           f.PodCIDR,
		factPrefix + "serviceCIDR":       f.ServiceCIDR,
		factPrefix + "dnsIP":             f.DNSIP,
		factPrefix + "domain":            f.Domain,
		factPrefix + "controlPlaneHost":  f.ControlPlaneHost,
		factPrefix + "controlPlanePort":  f.ControlPlanePort,
	}
}

// factNames lists the names of all facts, sorted.
func factNames() []string {
	var names []string
	for name := range (Facts{}).values() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func isFact(parameter string) bool { return strings.HasPrefix(parameter, factPrefix) }

// UnknownFactError says that a bundle uses a fact that nobody could tell.
type UnknownFactError struct {
	Addon string
	// Fact is its name as bundles write it, such as cluster.podCIDR.
	Fact string
}

func (e *UnknownFactError) Error() string {
	return fmt.Sprintf("add-on %s needs %s, which this cluster does not tell", e.Addon, e.Fact)
}
