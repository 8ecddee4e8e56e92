// Package v1alpha1 holds the API types of whole-cluster operations: ClusterUpgrade.
//
// A ClusterUpgrade says to which Kubernetes version a Cluster is to go. Its spec is all that the operator needs; its
// status tells the plan, step by step, and what is waited for. Nothing in the status is needed to go on: what is left is
// derived from the cluster's own objects.
//
// +kubebuilder:object:generate=true
// +groupName=lifecycle.millwright.dev
package v1alpha1
