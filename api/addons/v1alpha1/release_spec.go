package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// VersionAuto stands for the newest version of a bundle that is stated for the cluster's Kubernetes version.
const VersionAuto = "auto"

// Follows tells whether a version that is asked for follows the cluster's Kubernetes version.
func Follows(version string) bool { return version == "" || version == VersionAuto }

// ReleaseTemplate is what a cluster shall have of a bundle, the same for all clusters of an Addon.
type ReleaseTemplate struct {
	// version of the bundle: one that the catalogue has, or auto, the newest that is stated for the cluster's Kubernetes
	// version, which then follows it; default auto.
	// +optional
	// +kubebuilder:default=auto
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^(auto|v?[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?)$`
	Version string `json:"version,omitempty"`

	// parameters of the bundle: strings, numbers and booleans by name.
	// +optional
	// +kubebuilder:validation:MaxProperties=256
	Parameters map[string]apiextensionsv1.JSON `json:"parameters,omitempty"`

	// drift says what happens when an object is not as it was applied: Correct, or Report, which only says so; default
	// Correct.
	// +optional
	// +kubebuilder:default=Correct
	Drift DriftPolicy `json:"drift,omitempty"`

	// conflicts says what happens when somebody else owns a field with another value: Refuse, which applies nothing and
	// names the owner, or Force, which takes the field; default Refuse.
	// +optional
	// +kubebuilder:default=Refuse
	Conflicts ConflictPolicy `json:"conflicts,omitempty"`

	// adoptFrom lists field managers that only installed what is there, beyond kubeadm: all that they own becomes the
	// add-on's.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=128
	AdoptFrom []string `json:"adoptFrom,omitempty"`

	// deletion says what becomes of the objects when the release goes: Uninstall, or Orphan, which leaves them; default
	// Uninstall. Namespaces, CustomResourceDefinitions and PersistentVolumeClaims stay in any case.
	// +optional
	// +kubebuilder:default=Uninstall
	Deletion DeletionPolicy `json:"deletion,omitempty"`

	// healthTimeoutSeconds is how long the objects may take to be healthy before the release has failed; default 300. What
	// becomes healthy later is well again.
	// +optional
	// +kubebuilder:default=300
	// +kubebuilder:validation:Minimum=1
	HealthTimeoutSeconds *int32 `json:"healthTimeoutSeconds,omitempty"`

	// serviceAccount, of the workload cluster, is who the operator acts as there; default the user of the kubeconfig.
	// +optional
	ServiceAccount ServiceAccount `json:"serviceAccount,omitzero"`

	// paused leaves everything as it is: nothing is applied, corrected or uninstalled.
	// +optional
	Paused *bool `json:"paused,omitempty"`
}

// DriftPolicy says what happens when an object is not as it was applied.
// +kubebuilder:validation:Enum=Correct;Report
type DriftPolicy string

// Policies of drift.
const (
	DriftCorrect DriftPolicy = "Correct"
	DriftReport  DriftPolicy = "Report"
)

// ConflictPolicy says what happens to fields that somebody else owns.
// +kubebuilder:validation:Enum=Refuse;Force
type ConflictPolicy string

// Policies of conflicts.
const (
	ConflictsRefuse ConflictPolicy = "Refuse"
	ConflictsForce  ConflictPolicy = "Force"
)

// DeletionPolicy says what becomes of objects that nothing asks for any more.
// +kubebuilder:validation:Enum=Uninstall;Orphan
type DeletionPolicy string

// Policies of deletion.
const (
	DeletionUninstall DeletionPolicy = "Uninstall"
	DeletionOrphan    DeletionPolicy = "Orphan"
)

// ServiceAccount names a service account.
// +kubebuilder:validation:MinProperties=1
type ServiceAccount struct {
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
}

// Username is the name by which RBAC knows the service account.
func (s ServiceAccount) Username() string {
	return "system:serviceaccount:" + s.Namespace + ":" + s.Name
}
