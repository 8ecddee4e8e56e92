// Package bootstrap reconciles KubeadmConfigs: it turns each into the Secret with the user data from
// which a machine becomes a node.
//
// A KubeadmConfig waits for the Cluster's infrastructure. While the control plane is not initialized,
// one control plane machine, guarded by the lock <cluster>-lock, gets the configuration of kubeadm
// init. Every other one gets that of kubeadm join, with a bootstrap token of its own in the workload
// cluster, which is kept alive until the machine has joined.
//
// The package never looks at infrastructure. It reads plan.go to learn what to do; kubeadm's
// documents and the cloud-config come from internal packages.
package bootstrap
