// Package cluster reconciles Clusters: it takes over the infrastructure and the control plane of a Cluster, copies the
// endpoint and what they report, watches the connection to the workload cluster, counts machines, and deletes it all in
// order.
//
// In: Clusters, their MachineDeployments, MachineSets and stand-alone Machines, objects of any provider through
// package contract, the connection through package workload. Out: spec.controlPlaneEndpoint, status and conditions of
// the Cluster; owner references.
//
// It sums up what other controllers report of Machines and never looks at Machines that they manage, so that its cost
// does not grow with their number.
package cluster
