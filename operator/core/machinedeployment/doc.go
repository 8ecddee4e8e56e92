// Package machinedeployment keeps the MachineSets of a MachineDeployment, and replaces them one by the other when what
// they are made from changes.
//
// In: a MachineDeployment, its MachineSets and their Machines. Out: MachineSets named after the hash of their template,
// with the number of replicas each is to have, what it takes over in place, and status. The steps are planned by package
// lifecycle.
//
// It writes MachineSets, never Machines. Of infrastructure it reads one thing: what a template says of a node's
// capacity, for cluster-autoscaler.
package machinedeployment
