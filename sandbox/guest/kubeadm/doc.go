// Package kubeadm runs kubeadm init and join on a guest with kubeadm's own
// packages: its configuration loader, validation, discovery and phases, at the
// version that this module is built with. Arguments come in as on a command
// line; files below the guest's root, objects in the cluster and kubeadm's own
// output come out.
//
// Its own are only the phases that touch a host or wait at 127.0.0.1: preflight,
// kubelet-start, kubelet-wait-bootstrap, kubelet-finalize and wait-control-plane.
// The package knows no cloud-init, and the kubelet only as something to start.
package kubeadm
