// Package diagnosis says what is wrong with a cluster, and which of its troubles the others wait for.
//
// In: the graph of a cluster and what else was seen (events, the workload cluster's nodes, pods and requests for
// certificates, releases of add-ons, upgrades). Out: findings, each with a stable code, the object, since when, the cause in
// plain words, what to do, and the evidence; the first is the one to mend first. It works on objects of any provider, whoever
// reconciles them, and is pure: no client, no clock but the one given.
//
// Rules know one kind of trouble each and nothing of one another: told.go reads conditions by a table, the other files what
// no condition says. What is cause and what is consequence is decided in one place, order.go, by the layer of a finding.
package diagnosis
