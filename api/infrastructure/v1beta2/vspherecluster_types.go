package v1beta2

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

const (
	// ClusterFinalizer keeps a VSphereCluster until its VSphereMachines are gone.
	ClusterFinalizer = "vspherecluster.infrastructure.cluster.x-k8s.io"
	// IdentitySecretFinalizer keeps the Secret with the credentials of a VSphereCluster until that cluster is gone:
	// without it nothing could delete the virtual machines.
	IdentitySecretFinalizer = "vspherecluster/infrastructure.cluster.x-k8s.io"
)

// VSphereClusterSpec is the desired state of a VSphereCluster.
type VSphereClusterSpec struct {
	// server is the host name or address of vCenter, with an optional port.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Server string `json:"server,omitempty"`

	// thumbprint is the SHA-1 or SHA-256 sum of vCenter's certificate as colon-separated hexadecimal bytes. When set,
	// only that certificate is accepted; when empty, the certificate must be trusted by the system's roots.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Thumbprint string `json:"thumbprint,omitempty"`

	// controlPlaneEndpoint is the address of the cluster's Kubernetes API. The provider does not make one.
	// +optional
	ControlPlaneEndpoint APIEndpoint `json:"controlPlaneEndpoint,omitzero"`

	// identityRef names the credentials: a Secret in the same namespace with the keys username and password, or a
	// VSphereClusterIdentity.
	// +optional
	IdentityRef VSphereIdentityReference `json:"identityRef,omitzero"`

	// clusterModules are the anti-affinity modules made for the cluster.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=512
	ClusterModules []ClusterModule `json:"clusterModules,omitempty"`

	// disableClusterModule leaves anti-affinity modules out.
	// +optional
	DisableClusterModule *bool `json:"disableClusterModule,omitempty"`

	// failureDomainSelector selects VSphereDeploymentZones as failure domains. Unset: none; empty: all of the server.
	// +optional
	FailureDomainSelector *metav1.LabelSelector `json:"failureDomainSelector,omitempty"`
}

// APIEndpoint is the address of a Kubernetes API.
// +kubebuilder:validation:MinProperties=1
type APIEndpoint struct {
	// host is a host name or an address.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Host string `json:"host,omitempty"`

	// port is a TCP port.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`
}

// IsSet tells whether both host and port are there.
func (e APIEndpoint) IsSet() bool { return e.Host != "" && e.Port != 0 }

// String is host:port.
func (e APIEndpoint) String() string { return fmt.Sprintf("%s:%d", e.Host, e.Port) }

// ClusterModule is an anti-affinity module and the object whose virtual machines it keeps apart.
type ClusterModule struct {
	// controlPlane tells whether the object owns control plane machines.
	// +required
	ControlPlane *bool `json:"controlPlane,omitempty"`

	// targetObjectName is the name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	TargetObjectName string `json:"targetObjectName,omitempty"`

	// moduleUUID identifies the module in vCenter.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	ModuleUUID string `json:"moduleUUID,omitempty"`
}

// VSphereClusterStatus is the observed state of a VSphereCluster.
type VSphereClusterStatus struct {
	// conditions are Ready, VCenterAvailable, ControlPlaneEndpointSet, FailureDomainsReady and Paused.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// initialization is part of the Cluster API contract.
	// +optional
	Initialization VSphereClusterInitializationStatus `json:"initialization,omitzero"`

	// failureDomains are the selected deployment zones.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=100
	FailureDomains []clusterv1.FailureDomain `json:"failureDomains,omitempty"`

	// vCenterVersion is the version that vCenter reports.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	VCenterVersion string `json:"vCenterVersion,omitempty"`
}

// VSphereClusterInitializationStatus tells how far the first provisioning is.
// +kubebuilder:validation:MinProperties=1
type VSphereClusterInitializationStatus struct {
	// provisioned is true once the infrastructure of the cluster was complete; it never goes back.
	// +optional
	Provisioned *bool `json:"provisioned,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=vsphereclusters,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".metadata.labels['cluster\\.x-k8s\\.io/cluster-name']",description="Cluster"
// +kubebuilder:printcolumn:name="Server",type="string",JSONPath=".spec.server",description="vCenter"
// +kubebuilder:printcolumn:name="Endpoint",type="string",JSONPath=".spec.controlPlaneEndpoint.host",description="Host of the Kubernetes API"
// +kubebuilder:printcolumn:name="Paused",type="string",JSONPath=`.status.conditions[?(@.type=="Paused")].status`,description="Reconciliation paused",priority=10
// +kubebuilder:printcolumn:name="Provisioned",type="string",JSONPath=".status.initialization.provisioned",description="Infrastructure of the cluster is complete"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Ready condition"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"

// VSphereCluster is the infrastructure of one cluster: the vCenter, the credentials and the API endpoint.
type VSphereCluster struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +required
	Spec VSphereClusterSpec `json:"spec,omitzero"`

	// status is the observed state.
	// +optional
	Status VSphereClusterStatus `json:"status,omitzero"`
}

// GetConditions returns status.conditions.
func (c *VSphereCluster) GetConditions() []metav1.Condition { return c.Status.Conditions }

// SetConditions replaces status.conditions.
func (c *VSphereCluster) SetConditions(conditions []metav1.Condition) {
	c.Status.Conditions = conditions
}

// +kubebuilder:object:root=true

// VSphereClusterList is a list of VSphereClusters.
type VSphereClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []VSphereCluster `json:"items"`
}

// VSphereClusterTemplateSpec is the desired state of a VSphereClusterTemplate.
type VSphereClusterTemplateSpec struct {
	// template is what VSphereClusters are made from.
	// +required
	Template VSphereClusterTemplateResource `json:"template,omitzero"`
}

// VSphereClusterTemplateResource is what VSphereClusters are made from.
type VSphereClusterTemplateResource struct {
	// metadata is copied to the VSphereClusters.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitzero"`

	// spec is copied to the VSphereClusters.
	// +optional
	Spec VSphereClusterSpec `json:"spec,omitzero"`
}

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=vsphereclustertemplates,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion

// VSphereClusterTemplate is a template of VSphereClusters, for ClusterClasses.
type VSphereClusterTemplate struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +optional
	Spec VSphereClusterTemplateSpec `json:"spec,omitzero"`
}

// +kubebuilder:object:root=true

// VSphereClusterTemplateList is a list of VSphereClusterTemplates.
type VSphereClusterTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []VSphereClusterTemplate `json:"items"`
}
