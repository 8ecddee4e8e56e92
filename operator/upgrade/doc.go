// Package upgrade carries out ClusterUpgrades.
//
// In: a ClusterUpgrade, the objects of its Cluster and what the workload cluster says of itself. Out: the version and the
// machine template of the control plane and of one MachineDeployment after the other, machine templates with another
// image, and the status of the ClusterUpgrade.
//
// It writes objects and makes no machine: whose controllers replace the machines, ours or upstream's, it does not know.
// Every step is derived from what is observed: the status is told and never read, but for what a user was told before.
// What may come next is decided in plan.go, without a client; package internal/lifecycle/upgrade plans the order.
package upgrade
