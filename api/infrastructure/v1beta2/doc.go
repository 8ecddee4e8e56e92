// Package v1beta2 holds the API types of the vSphere provider: VSphereCluster,
// VSphereMachine, their templates, VSphereClusterIdentity, VSphereFailureDomain
// and VSphereDeploymentZone.
//
// The wire format is that of Cluster API Provider vSphere (CAPV), its package
// api/govmomi/v1beta2, so that its manifests and its objects work unchanged.
// Where CAPV keeps a VSphereVM object beside each VSphereMachine, the few facts
// about the virtual machine are in the status of the VSphereMachine itself.
// Optional strings may be empty: the published templates fill them so.
//
// +kubebuilder:object:generate=true
// +groupName=infrastructure.cluster.x-k8s.io
package v1beta2
