// Package guests runs what is inside virtual machines: for each one that is
// powered on with userdata, a process that does what cloud-init, kubeadm and a
// kubelet would do there.
//
// In: events of vCenter. Out: guest processes, each in a folder and at an
// address of its own for as long as its machine exists; what they tell about
// themselves goes to the sandbox's state, their consoles to logs/vms, the
// virtual addresses they hold to package endpoint.
//
// Where guests are instant, a machine becomes a Node (package instant) instead.
//
// A machine whose extraConfig has sandbox.tools = off runs without VMware
// Tools: it never reports an address.
package guests
