// Command kubectl-addons is the plugin "kubectl addons": the catalogue of add-ons,
// and add-ons on the cluster of the current context or on a workload cluster.
//
// In come flags, the kubeconfig and the embedded catalogue; out go objects on a
// cluster, through internal/bundle (what to apply) and internal/apply (how). One
// file a command; target.go finds the cluster, facts.go asks it what bundles need
// to know, bundles.go renders. What an add-on is made of is not known here.
package main
