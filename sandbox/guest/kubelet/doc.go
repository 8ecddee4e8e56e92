// Package kubelet is a hollow kubelet: it reads the flags and configuration that
// kubeadm wrote for a real one, gets its credentials by TLS bootstrap, registers
// the Node and keeps its Lease, shows static pods by mirror pods, reports the
// pods bound to the Node as running, lets go of deleted ones, and serves the part
// of the kubelet's API that a control plane needs (port-forward, logs).
//
// No container runs: static pods are processes of package staticpod, all other
// pods exist in their status only. It obeys the Node authorizer and the
// NodeRestriction plugin, as it has no other rights than a kubelet's.
package kubelet
