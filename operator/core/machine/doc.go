// Package machine reconciles Machines: it takes over the bootstrap config and the infrastructure object of a Machine,
// copies what they report, finds the Node that came of it, keeps the Node's labels, annotations and taints, and walks
// all of it back when the Machine is deleted.
//
// In: Machines, their Cluster, objects of any provider through package contract, Nodes through package workload.
// Out: spec.providerID, spec.bootstrap.dataSecretName, status and conditions of the Machine; owner references; Nodes.
//
// It decides nothing about how many Machines there are, and knows no provider's types.
package machine
