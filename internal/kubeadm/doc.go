// Package kubeadm turns the kubeadm part of a KubeadmConfig into the documents that kubeadm itself
// reads: ClusterConfiguration, InitConfiguration and JoinConfiguration of kubeadm.k8s.io/v1beta4, or
// v1beta3 for Kubernetes before v1.31.
//
// Cluster API's types and facts of the Cluster go in, YAML comes out. The documents are strict: a
// field that kubeadm does not know is never written. Nothing here talks to a cluster.
package kubeadm
