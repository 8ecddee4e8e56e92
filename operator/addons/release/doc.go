// Package release reconciles AddonReleases: it brings one bundle to one cluster and keeps it there.
//
// In: an AddonRelease, its Cluster, the Kubernetes version of its control plane, the releases it depends on, and the
// workload cluster's own record of what is installed. Out: the bundle's objects in the workload cluster, by package
// apply; conditions, the installed version and its history.
//
// Nothing waits in a reconcile. What is applied is watched by its metadata (package members): as long as nothing was
// changed there and what it was rendered from is the same, a reconcile makes no request. What this process knows so is
// kept in memory.go; after a restart everything is compared once. Which version, and whether there is anything to do,
// is decided in plan.go, without a client.
package release
