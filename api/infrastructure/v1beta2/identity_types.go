package v1beta2

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// VSphereIdentityKind is the kind of an object with credentials.
type VSphereIdentityKind string

const (
	// SecretKind is a Secret in the namespace of the VSphereCluster.
	SecretKind VSphereIdentityKind = "Secret"
	// VSphereClusterIdentityKind is a VSphereClusterIdentity, which several namespaces can use.
	VSphereClusterIdentityKind VSphereIdentityKind = "VSphereClusterIdentity"
)

// VSphereIdentityReference names credentials.
type VSphereIdentityReference struct {
	// kind is Secret or VSphereClusterIdentity.
	// +required
	// +kubebuilder:validation:Enum=VSphereClusterIdentity;Secret
	Kind VSphereIdentityKind `json:"kind,omitempty"`

	// name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
}

// VSphereClusterIdentitySpec names a Secret and who may use it.
type VSphereClusterIdentitySpec struct {
	// secretName is a Secret in the operator's namespace with the keys username and password.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName,omitempty"`

	// allowedNamespaces selects the namespaces whose clusters may use the credentials. Unset: none.
	// +optional
	AllowedNamespaces *AllowedNamespaces `json:"allowedNamespaces,omitempty"`
}

// AllowedNamespaces selects namespaces.
type AllowedNamespaces struct {
	// selector selects by label. Empty: all.
	// +optional
	Selector metav1.LabelSelector `json:"selector,omitzero"`
}

// VSphereClusterIdentityStatus is the observed state of a VSphereClusterIdentity.
type VSphereClusterIdentityStatus struct {
	// conditions are Available and Paused.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// ready tells whether the credentials can be used.
	// +optional
	Ready *bool `json:"ready,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=vsphereclusteridentities,scope=Cluster,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status

// VSphereClusterIdentity is an account of vCenter that clusters of several namespaces can use.
type VSphereClusterIdentity struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +required
	Spec VSphereClusterIdentitySpec `json:"spec,omitzero"`

	// status is the observed state.
	// +optional
	Status VSphereClusterIdentityStatus `json:"status,omitzero"`
}

// GetConditions returns status.conditions.
func (i *VSphereClusterIdentity) GetConditions() []metav1.Condition { return i.Status.Conditions }

// SetConditions replaces status.conditions.
func (i *VSphereClusterIdentity) SetConditions(conditions []metav1.Condition) {
	i.Status.Conditions = conditions
}

// +kubebuilder:object:root=true

// VSphereClusterIdentityList is a list of VSphereClusterIdentities.
type VSphereClusterIdentityList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []VSphereClusterIdentity `json:"items"`
}
