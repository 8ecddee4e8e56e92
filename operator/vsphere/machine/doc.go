// Package machine reconciles VSphereMachines: it makes a virtual machine from a template, gives it its userdata, switches
// it on, waits for its addresses, and destroys it in the end.
//
// In: a VSphereMachine, its Machine, Cluster, VSphereCluster, bootstrap Secret, and what vCenter holds. Out: a virtual
// machine, spec.providerID, status.addresses, status.initialization.provisioned, conditions.
//
// What to do next is decided in plan.go from a snapshot, without a client. Nothing waits in a goroutine: a task in vCenter
// is started, and its end brings the object back.
package machine
