// Package addon reconciles Addons: a bundle on all clusters that a selector selects.
//
// In: an Addon, the Clusters of its namespace, the releases of its bundle there and the other Addons of the same bundle.
// Out: one AddonRelease a cluster, changed in waves, and the status of the whole. What a release does on its cluster is
// package release's; which Addon has a say on which cluster is package claim's.
//
// Everything is derived anew from the releases: how far a rollout is is which of them ask for what the Addon asks for, and how
// those fare. A killed operator goes on where the fleet is.
package addon
