// Package v1alpha1 holds the API types of add-ons: Addon and AddonRelease.
//
// An Addon says which bundle the clusters that it selects shall have, and how it gets to all of them. An AddonRelease is
// one bundle on one cluster; its name, cluster and bundle with a dot between, makes sure that there is one.
//
// What is installed is recorded in the workload cluster itself, in the parent of its ApplySet. The status tells it, and
// nothing is decided on what a status says.
//
// +kubebuilder:object:generate=true
// +groupName=addons.millwright.dev
package v1alpha1
