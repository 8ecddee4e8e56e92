package v1beta2

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// FailureDomainType is the kind of vCenter object that a failure domain stands for.
// +kubebuilder:validation:Enum=Datacenter;ComputeCluster;HostGroup
type FailureDomainType string

const (
	// DatacenterFailureDomain is a datacenter.
	DatacenterFailureDomain FailureDomainType = "Datacenter"
	// ComputeClusterFailureDomain is a cluster of hosts.
	ComputeClusterFailureDomain FailureDomainType = "ComputeCluster"
	// HostGroupFailureDomain is a group of hosts in a cluster.
	HostGroupFailureDomain FailureDomainType = "HostGroup"
)

// VSphereFailureDomainSpec is the desired state of a VSphereFailureDomain.
type VSphereFailureDomainSpec struct {
	// region is the tag of the region.
	// +required
	Region FailureDomain `json:"region,omitzero"`

	// zone is the tag of the zone.
	// +required
	Zone FailureDomain `json:"zone,omitzero"`

	// topology says where in vCenter the failure domain is.
	// +required
	Topology Topology `json:"topology,omitzero"`
}

// FailureDomain is a region or a zone, known by a vSphere tag.
type FailureDomain struct {
	// name of the tag.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Name string `json:"name,omitempty"`

	// type is the kind of vCenter object that bears the tag.
	// +required
	Type FailureDomainType `json:"type,omitempty"`

	// tagCategory is the category of the tag.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	TagCategory string `json:"tagCategory,omitempty"`
}

// Topology says where in vCenter a failure domain is. What is set here goes before what the machine says.
type Topology struct {
	// datacenter of the failure domain.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Datacenter string `json:"datacenter,omitempty"`

	// computeCluster of the failure domain.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	ComputeCluster string `json:"computeCluster,omitempty"`

	// hosts are the groups that tie machines to hosts.
	// +optional
	Hosts FailureDomainHosts `json:"hosts,omitzero"`

	// networks of the machines' devices, in order.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=2048
	Networks []string `json:"networks,omitempty"`

	// networkConfigurations configure the machines' devices, in order.
	// +optional
	// +listType=map
	// +listMapKey=networkName
	// +kubebuilder:validation:MaxItems=128
	NetworkConfigurations []NetworkConfiguration `json:"networkConfigurations,omitempty"`

	// datastore of the machines.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Datastore string `json:"datastore,omitempty"`

	// template of the machines.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Template string `json:"template,omitempty"`
}

// NetworkConfiguration configures one device of the machines of a failure domain.
type NetworkConfiguration struct {
	// networkName is the network that the device is connected to.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	NetworkName string `json:"networkName,omitempty"`

	// dhcp4 asks for an IPv4 address by DHCP.
	// +optional
	DHCP4 *bool `json:"dhcp4,omitempty"`

	// dhcp6 asks for an IPv6 address by DHCP.
	// +optional
	DHCP6 *bool `json:"dhcp6,omitempty"`

	// nameservers are addresses of DNS servers.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	Nameservers []string `json:"nameservers,omitempty"`

	// searchDomains are DNS search domains.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	SearchDomains []string `json:"searchDomains,omitempty"`

	// dhcp4Overrides tune the guest's DHCP client for IPv4.
	// +optional
	DHCP4Overrides *DHCPOverrides `json:"dhcp4Overrides,omitempty"`

	// dhcp6Overrides tune the guest's DHCP client for IPv6.
	// +optional
	DHCP6Overrides *DHCPOverrides `json:"dhcp6Overrides,omitempty"`

	// addressesFromPools are pools of an IPAM provider to claim addresses from.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	AddressesFromPools []IPPoolReference `json:"addressesFromPools,omitempty"`
}

// FailureDomainHosts are the groups that tie machines to hosts.
type FailureDomainHosts struct {
	// vmGroupName is the group of virtual machines.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	VMGroupName string `json:"vmGroupName,omitempty"`

	// hostGroupName is the group of hosts.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	HostGroupName string `json:"hostGroupName,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=vspherefailuredomains,scope=Cluster,categories=cluster-api

// VSphereFailureDomain describes a region and zone in terms of vCenter objects.
type VSphereFailureDomain struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +required
	Spec VSphereFailureDomainSpec `json:"spec,omitzero"`
}

// +kubebuilder:object:root=true

// VSphereFailureDomainList is a list of VSphereFailureDomains.
type VSphereFailureDomainList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []VSphereFailureDomain `json:"items"`
}

// VSphereDeploymentZoneSpec is the desired state of a VSphereDeploymentZone.
type VSphereDeploymentZoneSpec struct {
	// server is the vCenter of the zone. Empty: that of the cluster.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Server string `json:"server,omitempty"`

	// thumbprint is the SHA-1 or SHA-256 sum of vCenter's certificate. Empty: that of the cluster, where the server is
	// the same.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Thumbprint string `json:"thumbprint,omitempty"`

	// identityRef names the credentials for the zone's vCenter. Empty: those of the cluster.
	// +optional
	IdentityRef *VSphereIdentityReference `json:"identityRef,omitempty"`

	// failureDomain is the VSphereFailureDomain of the zone.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	FailureDomain string `json:"failureDomain,omitempty"`

	// controlPlane tells whether control plane machines may be placed here; true when empty.
	// +optional
	ControlPlane *bool `json:"controlPlane,omitempty"`

	// placementConstraint narrows the place inside the failure domain.
	// +optional
	PlacementConstraint PlacementConstraint `json:"placementConstraint,omitzero"`
}

// PlacementConstraint narrows the place of machines.
// +kubebuilder:validation:MinProperties=1
type PlacementConstraint struct {
	// resourcePool of the machines.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	ResourcePool string `json:"resourcePool,omitempty"`

	// folder of the machines.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Folder string `json:"folder,omitempty"`
}

// VSphereDeploymentZoneStatus is the observed state of a VSphereDeploymentZone.
type VSphereDeploymentZoneStatus struct {
	// conditions are Ready, VCenterAvailable, PlacementConstraintReady, FailureDomainValidated and Paused.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// ready tells whether machines can be placed in the zone; clusters leave out a zone that is not.
	// +optional
	Ready *bool `json:"ready,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=vspheredeploymentzones,scope=Cluster,categories=cluster-api
// +kubebuilder:subresource:status

// VSphereDeploymentZone offers a failure domain to clusters.
type VSphereDeploymentZone struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +required
	Spec VSphereDeploymentZoneSpec `json:"spec,omitzero"`

	// status is the observed state.
	// +optional
	Status VSphereDeploymentZoneStatus `json:"status,omitzero"`
}

// GetConditions returns status.conditions.
func (z *VSphereDeploymentZone) GetConditions() []metav1.Condition { return z.Status.Conditions }

// SetConditions replaces status.conditions.
func (z *VSphereDeploymentZone) SetConditions(conditions []metav1.Condition) {
	z.Status.Conditions = conditions
}

// +kubebuilder:object:root=true

// VSphereDeploymentZoneList is a list of VSphereDeploymentZones.
type VSphereDeploymentZoneList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []VSphereDeploymentZone `json:"items"`
}
