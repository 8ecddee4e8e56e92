// Package bundle turns an entry of the add-on catalogue into Kubernetes objects.
//
// In comes a file system with one folder an add-on (addon.yaml and a kustomize
// folder a version), the facts of a cluster and the user's parameters; out come
// the objects, the same for the same input. The steps are Load, Resolve (which
// version fits a Kubernetes version), Fetch (what upstream publishes, checked
// against its digest, from its address or a mirror) and Render (kustomize in
// memory).
//
// The package never speaks to a cluster: whoever reads the facts and whoever
// applies the objects is above it.
package bundle
