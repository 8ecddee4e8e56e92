// Package controlplane reconciles KubeadmControlPlanes: it keeps their certificates, the cluster's
// kubeconfig and their Machines, one change at a time.
//
// The first Machine initializes the control plane; each further one is made when those before it are
// healthy: Node, static pods and etcd member. A Machine that goes hands over etcd's leadership and
// its membership before its infrastructure is touched, and never at the price of quorum.
//
// What to do is decided in plan.go, rollout.go, uptodate.go and safety.go from a snapshot, what to tell in health.go and
// status.go; only reconciler.go, act.go, inspect.go, members.go, upgrade.go and the files named after their objects talk to an API
// server. The package knows infrastructure through the Cluster API contract alone.
package controlplane
