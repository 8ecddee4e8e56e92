// Package staticpod runs the pods of a guest's manifest folder as processes of
// the host. A manifest comes in as kubeadm wrote it; translation (pure) turns
// its command line into one that works below the guest's root and at its own
// loopback address; a manager starts, probes, restarts and stops the processes
// as a kubelet would its containers, and tells their state.
//
// Pods other than etcd and the control plane's (kube-vip, say) are recorded and
// not run. The package has no client: mirror pods are the kubelet's business.
package staticpod
