// Package workload keeps connections to workload clusters.
//
// In: the Secret <cluster>-kubeconfig of each cluster that somebody asked for. Out: a client with a cache of Nodes, the
// health of the connection, and events when a cluster connects or is lost and when one of its Nodes changes.
//
// Each cluster has its own goroutine and its own timeouts, so that one that does not answer slows no other. A cluster
// that has never answered is tried at intervals of 100 ms to 1 s: a control plane that begins to answer is seen within a
// second. A connected one is watched; besides, its /livez is asked every 10 s, the only request that an idle
// connection makes, because a dead network ends no watch. A lost one is tried at intervals of 1 to 10 s.
//
// The package knows Nodes and kubeconfigs, and nothing of Machines.
package workload
