// Package machinehealthcheck finds Machines that do not get well by themselves, and has them remediated.
//
// In: MachineHealthChecks, the Machines that they select, the Nodes of these through package workload. Out: conditions of
// the Machines: HealthCheckSucceeded, and OwnerRemediated=False as the request to the Machine's owner to replace it; or a
// remediation request for somebody else, cloned from a template of any kind; the status of the check.
//
// A verdict needs knowledge: a Node that cannot be seen is neither well nor ill. No Machine is deleted here; that is
// for its owner, who knows how many may be missing at once.
package machinehealthcheck
