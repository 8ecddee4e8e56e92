package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AddonReleaseFinalizer keeps an AddonRelease until its objects are off the cluster, or left to somebody.
const AddonReleaseFinalizer = "addons.millwright.dev/addonrelease"

// BundleLabel on an AddonRelease is the name of its bundle.
const BundleLabel = "addons.millwright.dev/bundle"

// HeldVersionAnnotation on an AddonRelease names the version that the cluster shall have while it is being upgraded. It goes
// before what spec.version "auto" would choose, and a version that is named in the spec goes before it.
const HeldVersionAnnotation = "addons.millwright.dev/held-version"

// AddonReleaseName is the name of the one release of a bundle on a cluster. No bundle has a dot in its name.
func AddonReleaseName(cluster, bundle string) string { return cluster + "." + bundle }

// AddonReleaseSpec is a bundle on one cluster.
// +kubebuilder:validation:XValidation:rule="self.clusterName == oldSelf.clusterName && self.bundle == oldSelf.bundle",message="clusterName and bundle cannot be changed: make another AddonRelease"
type AddonReleaseSpec struct {
	// clusterName is the Cluster, in the same namespace.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	ClusterName string `json:"clusterName,omitempty"`

	// bundle is the name of an entry of the catalogue.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Bundle string `json:"bundle,omitempty"`

	ReleaseTemplate `json:",inline"`
}

// AddonRelease is one bundle on one cluster. An Addon makes one for each cluster that it selects; a person may make one
// too, which no Addon then touches.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=addonreleases,scope=Namespaced,categories={millwright}
// +kubebuilder:subresource:status
// +kubebuilder:validation:XValidation:rule="self.metadata.name == self.spec.clusterName + '.' + self.spec.bundle",message="metadata.name must be spec.clusterName and spec.bundle with a dot between"
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec.clusterName`
// +kubebuilder:printcolumn:name="Bundle",type=string,JSONPath=`.spec.bundle`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.version`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
type AddonRelease struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec AddonReleaseSpec `json:"spec,omitzero"`
	// +optional
	Status AddonReleaseStatus `json:"status,omitzero"`
}

// GetConditions returns the conditions of the status.
func (r *AddonRelease) GetConditions() []metav1.Condition { return r.Status.Conditions }

// SetConditions replaces the conditions of the status.
func (r *AddonRelease) SetConditions(list []metav1.Condition) { r.Status.Conditions = list }

// AddonReleaseList is a list of AddonReleases.
// +kubebuilder:object:root=true
type AddonReleaseList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AddonRelease `json:"items"`
}
