// Package fleet tests the operator's controllers of add-ons with several real kube-apiservers: a management cluster and
// workload clusters, of which the management cluster is one itself.
//
// Each test has a namespace and a catalogue of its own, with bundles of its own, so that tests on the same clusters do
// not meet. Nothing runs there but API servers: a test plays the controllers where health depends on them.
package fleet
