// Package etcd asks and changes the etcd of a kubeadm control plane from outside the cluster: its
// members, leader and alarms.
//
// It reaches an etcd static pod through the workload cluster's API server by port-forward, with a
// client certificate of the cluster's etcd authority. A Client is meant for one short use: connect,
// read a Status, perhaps move the leader or remove a member, close. What to remove, and whether that
// is safe, is decided by the caller.
package etcd
