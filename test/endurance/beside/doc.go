// Package beside tests add-ons and upgrades where another process looks after the machines.
//
// The operator of its sandbox runs the groups core, kubeadm and vsphere, and stands for upstream's controllers. A second one runs
// addons and upgrade, with the rights of manifests/beside-upstream and no more.
package beside
