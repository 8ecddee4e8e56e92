// Package daemon is the running sandbox: it puts the management cluster,
// vCenter, the guests and the operator together, in the order in which they
// need each other, keeps them running and takes them down.
//
// In: a directory and the paths of programs. Out: state.json, the kubeconfig,
// vsphere.env, logs. It ends when it is told to, or when a part cannot be
// brought up; its children end with it.
package daemon
