// Package incluster lets operator/kubeadm/incluster work on a real API server that holds what a real kubeadm has left in
// a cluster, and cuts it short at each of its writes.
package incluster
