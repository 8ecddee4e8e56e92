package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// AddonFinalizer keeps an Addon until its releases are gone or another Addon's.
const AddonFinalizer = "addons.millwright.dev/addon"

// Conditions of an Addon.
const (
	// AddonReadyCondition is true when every selected cluster has what the Addon asks for, and it is healthy.
	AddonReadyCondition = "Ready"

	// AddonRolledOutCondition is true when every release asks for what the Addon asks for. It is False with the reason
	// Halted when too many have failed for it to go on.
	AddonRolledOutCondition = "RolledOut"

	// AddonUnchallengedCondition is false when another Addon has the same bundle on a selected cluster.
	AddonUnchallengedCondition = "Unchallenged"
)

// Reasons of the conditions of an Addon.
const (
	AllReadyReason       = "AllReady"
	NotAllReadyReason    = "NotAllReady"
	NoClustersReason     = "NoClusters"
	RolledOutReason      = "RolledOut"
	RollingOutReason     = "RollingOut"
	HaltedReason         = "Halted"
	UnknownBundleReason  = "UnknownBundle"
	UnchallengedReason   = "Unchallenged"
	OlderAddonWinsReason = "OlderAddonWins"
	DeletingReason       = "Deleting"
)

// AddonSpec is a bundle and the clusters that shall have it.
type AddonSpec struct {
	// bundle is the name of an entry of the catalogue.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="bundle cannot be changed: make another Addon"
	Bundle string `json:"bundle,omitempty"`

	// clusterSelector selects Clusters of the same namespace by their labels; an empty one selects all.
	// +required
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`

	ReleaseTemplate `json:",inline"`

	// rollout says how a change gets to all clusters.
	// +optional
	Rollout Rollout `json:"rollout,omitzero"`
}

// Rollout says how a change gets to all clusters.
// +kubebuilder:validation:MinProperties=1
type Rollout struct {
	// maxConcurrent is how many clusters may be changing at once, a number or a percentage of those selected; default all.
	// One that does not answer is not counted.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 : self.matches('^([1-9]|[1-9][0-9]|100)%$')",message="want a number of at least 1, or a percentage from 1% to 100%"
	MaxConcurrent *intstr.IntOrString `json:"maxConcurrent,omitempty"`

	// canary selects the clusters that are changed first. The others follow when all of these are ready.
	// +optional
	Canary *metav1.LabelSelector `json:"canary,omitempty"`

	// maxFailures is how many clusters may have failed before no further one is changed; default never. The rollout goes
	// on by itself when fewer are left, or when the Addon is changed.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxFailures *int32 `json:"maxFailures,omitempty"`
}

// AddonStatus tells how far an Addon is.
type AddonStatus struct {
	// conditions: Ready, RolledOut, Unchallenged.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// clusters is how many Clusters are selected; the other numbers are of their releases.
	// +optional
	Clusters *int32 `json:"clusters,omitempty"`

	// updated releases ask for what the Addon asks for.
	// +optional
	Updated *int32 `json:"updated,omitempty"`

	// ready are the updated ones whose cluster has it, healthy.
	// +optional
	Ready *int32 `json:"ready,omitempty"`

	// failed are the updated ones that will not be ready without a change.
	// +optional
	Failed *int32 `json:"failed,omitempty"`
}

// Addon keeps a bundle on the clusters that it selects.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=addons,scope=Namespaced,categories={millwright}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Bundle",type=string,JSONPath=`.spec.bundle`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.spec.version`
// +kubebuilder:printcolumn:name="Clusters",type=integer,JSONPath=`.status.clusters`
// +kubebuilder:printcolumn:name="Updated",type=integer,JSONPath=`.status.updated`
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.ready`
// +kubebuilder:printcolumn:name="Failed",type=integer,JSONPath=`.status.failed`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="RolledOut")].message`,priority=1
type Addon struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec AddonSpec `json:"spec,omitzero"`
	// +optional
	Status AddonStatus `json:"status,omitzero"`
}

// GetConditions returns the conditions of the status.
func (a *Addon) GetConditions() []metav1.Condition { return a.Status.Conditions }

// SetConditions replaces the conditions of the status.
func (a *Addon) SetConditions(list []metav1.Condition) { a.Status.Conditions = list }

// AddonList is a list of Addons.
// +kubebuilder:object:root=true
type AddonList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Addon `json:"items"`
}
