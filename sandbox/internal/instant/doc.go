// Package instant stands in for guests at no cost: a virtual machine that is
// powered on is registered as a Node, as if kubeadm join had run in it.
//
// In: machines, and the API server that all of them share. Out: Nodes that are
// Ready while their machines are on. There is no heartbeat: nobody in that
// cluster would miss it. What only a guest can do, such as a control plane,
// running pods or a kubelet's API, is not there.
package instant
