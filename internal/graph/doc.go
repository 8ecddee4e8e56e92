// Package graph holds the objects of one cluster as one graph: what belongs to
// what, in which state each is, since when and why.
//
// In come the objects of a management cluster, of any provider, read by Load once
// or kept up to date by a Follower; out go the tree that users look at and the
// answer to "is it there yet". Everything after loading is pure: no client, no
// clock but the one given. How things look on a terminal is not known here.
//
// Reading order: load.go, graph.go, state.go, tree.go, group.go, scaled.go.
package graph
