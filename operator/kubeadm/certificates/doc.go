// Package certificates keeps the Secrets from which a kubeadm control plane takes its authorities:
// <cluster>-ca, -etcd, -proxy and -sa, and, for an external etcd, -apiserver-etcd-client.
//
// A Cluster and its ClusterConfiguration go in; key pairs and the files for a machine come out. What
// is missing can be generated, once: the Secrets that a user made (those not of type
// cluster.x-k8s.io/secret) are read and never written.
package certificates
