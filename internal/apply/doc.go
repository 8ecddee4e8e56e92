// Package apply puts the objects of an add-on on a cluster and keeps account of them.
//
// In comes a Set (a name, a version, objects); out come server-side applies,
// prunes and an inventory. Deciding is apart from acting: read.go takes a
// Snapshot (live objects and the server's dry-run of ours), plan.go decides from
// it without a client, engine.go carries a Plan out in stages. A set is kept in
// kubectl's ApplySet form (applyset.go), its inventory in the parent ConfigMap.
//
// Reading order: set.go, plan.go, engine.go. The package knows nothing of
// catalogues, kustomize or where objects come from.
package apply
