// Package management is the sandbox's management cluster: etcd, kube-apiserver
// and kube-controller-manager as processes, with RBAC and service accounts as
// in a real one, Millwright's manifests installed, and the operator run as its
// Deployment would run it.
//
// In: an address of its own, binaries, a directory. Out: command lines to
// supervise, kubeconfigs, and a cluster that has the manifests.
//
// etcd runs with --unsafe-no-fsync: the sandbox's data does not outlive it, and
// fsync is what makes a laptop's etcd slow. The API server that instant guests
// share is made of the same parts. There is no scheduler and no node:
// nothing runs in this cluster, it only holds objects.
package management
