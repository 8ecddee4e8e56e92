// Package build makes the programs that the sandbox runs from their Go modules
// and keeps them.
//
// In: a Kubernetes version. Out: a folder with etcd, kube-apiserver,
// kube-controller-manager and kube-scheduler of that version, in the cache that
// all sandboxes of a user share, built at most once; and the guest that goes
// with that version, built each time, which is quick when nothing changed.
//
// The module requires the sandbox's own Kubernetes version; each other one has
// a versions/<version>.mod of its own. Where KUBEBUILDER_ASSETS is set, its
// etcd and kube-apiserver serve the management cluster instead.
package build
