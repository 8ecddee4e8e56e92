package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Conditions of an AddonRelease.
const (
	// ReadyCondition sums the others up: the cluster has what is asked for, and it is healthy.
	ReadyCondition = "Ready"

	// ResolvedCondition tells whether there is a version that may be installed now.
	ResolvedCondition = "Resolved"

	// AppliedCondition is true when the objects of the version that is asked for are in the cluster, and those that left it
	// are pruned.
	AppliedCondition = "Applied"

	// HealthyCondition is true when all objects are as their controllers want them.
	HealthyCondition = "Healthy"

	// InSyncCondition is false when somebody changed what was applied and the drift is only reported.
	InSyncCondition = "InSync"
)

// Reasons of the conditions of an AddonRelease.
const (
	ReadyReason    = "Ready"
	ResolvedReason = "Resolved"
	AppliedReason  = "Applied"
	HealthyReason  = "Healthy"
	InSyncReason   = "InSync"

	// PausedReason: the release or its Cluster is paused.
	PausedReason = "Paused"
	// ClusterNotFoundReason: there is no such Cluster.
	ClusterNotFoundReason = "ClusterNotFound"
	// ClusterUnreachableReason: the workload cluster does not answer, or not yet.
	ClusterUnreachableReason = "ClusterUnreachable"
	// NotAppliedYetReason: it has not come so far.
	NotAppliedYetReason = "NotAppliedYet"

	// BundleNotFoundReason: the catalogue has no such bundle or version.
	BundleNotFoundReason = "BundleNotFound"
	// NotStatedReason: no version is stated for the cluster's Kubernetes version; what is installed stays.
	NotStatedReason = "NotStatedForKubernetes"
	// HeldReason: an upgrade of the cluster says when the version moves.
	HeldReason = "HeldByUpgrade"
	// NoWayReason: the version cannot be reached in one step from what is installed.
	NoWayReason = "NotReachedFromInstalled"
	// DependencyReason: an add-on that has to be there first is not ready.
	DependencyReason = "WaitingForDependency"

	// ParametersReason: the parameters, or facts of the cluster, are not what the bundle needs.
	ParametersReason = "InvalidParameters"
	// SourceReason: what the bundle consists of cannot be fetched or rendered.
	SourceReason = "SourceUnavailable"
	// ConflictReason: somebody else owns fields with another value.
	ConflictReason = "Conflict"
	// RefusedReason: the API server does not take an object.
	RefusedReason = "Refused"
	// ApplyFailedReason: a request failed; it is tried again.
	ApplyFailedReason = "ApplyFailed"
	// PruningReason: objects of the version before are pruned once the new ones are healthy.
	PruningReason = "WaitingToPrune"

	// ProgressingReason: objects are not healthy yet, and have time left.
	ProgressingReason = "Progressing"
	// UnhealthyReason: objects are not healthy, and had the time to be.
	UnhealthyReason = "Unhealthy"
	// DriftedReason: somebody changed or deleted objects.
	DriftedReason = "Drifted"
	// UninstallingReason: the release is being deleted.
	UninstallingReason = "Uninstalling"
)

// AddonReleaseStatus tells what a cluster has of a bundle.
type AddonReleaseStatus struct {
	// conditions: Ready, Resolved, Applied, Healthy, InSync.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// kubernetesVersion is that of the cluster for which the version was chosen.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`

	// version is what is in the cluster, by its own record; empty when nothing is.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Version string `json:"version,omitempty"`

	// targetVersion is what spec.version comes to on this cluster.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	TargetVersion string `json:"targetVersion,omitempty"`

	// digest is that of all that the objects were rendered from.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Digest string `json:"digest,omitempty"`

	// objects counts the objects in the cluster, and retained those that left the bundle and stay.
	// +optional
	Objects *int32 `json:"objects,omitempty"`
	// +optional
	Retained *int32 `json:"retained,omitempty"`

	// unhealthy are objects that are not as they should be, the first ten.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Unhealthy []ObjectHealth `json:"unhealthy,omitempty"`

	// progressingSince is when the objects began to be waited for.
	// +optional
	ProgressingSince *metav1.Time `json:"progressingSince,omitempty"`

	// history holds the last ten versions and parameters that the cluster had, the newest first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	History []Revision `json:"history,omitempty"`
}

// ObjectHealth is how an object of the workload cluster is.
type ObjectHealth struct {
	// object is what kubectl calls it, with its namespace: daemonset.apps/calico-node in namespace kube-system.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Object string `json:"object,omitempty"`

	// status by kstatus: InProgress, Failed, Terminating, NotFound or Unknown.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Status string `json:"status,omitempty"`

	// message says why.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// Revision is a version, with its parameters, that a cluster had, and what installing it did.
type Revision struct {
	// revision counts from 1 and is never given twice.
	// +required
	Revision int32 `json:"revision,omitempty"`

	// +required
	// +kubebuilder:validation:MaxLength=64
	Version string `json:"version,omitempty"`

	// time is when the install came to its end.
	// +optional
	Time *metav1.Time `json:"time,omitempty"`

	// changes counts what the install did: 3 created, 1 pruned.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Changes string `json:"changes,omitempty"`
}
