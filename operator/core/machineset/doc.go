// Package machineset keeps the number of Machines of a MachineSet.
//
// In: a MachineSet, its Cluster, the Machines it controls, the templates it names, and the MachineDeployment that owns
// it, whose template decides which Machines are up to date. Out: Machines with their bootstrap configs and
// infrastructure objects, deletions, and status.
//
// It knows bootstrap and infrastructure objects by contract only, and never talks to a workload cluster.
package machineset
