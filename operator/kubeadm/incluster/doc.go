// Package incluster keeps in step with a control plane's version and spec what kubeadm has left in the workload
// cluster: the configuration and the rights that machines join with, kube-proxy and CoreDNS.
//
// Prepare belongs before the first machine of a new version or configuration joins, Finish after the last old one is
// gone. Both are given a client of the workload cluster and may be called at any time and again after a kill: what is
// already so costs reads alone. What a person has to put right comes back as a problem, not as an error.
//
// What to write is decided in rbac.go, proxy.go and dns.go from the objects alone; only prepare.go and finish.go talk
// to an API server. The package knows neither Machines nor conditions.
package incluster
