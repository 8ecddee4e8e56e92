// Package addon is what the command line and the operator do alike with an entry
// of a catalogue: it reads the facts of a cluster, makes a set for the engine of what the bundle says and of what
// the cluster has, and agrees with a KubeadmControlPlane on who looks after it.
//
// In come a bundle, its rendered objects and a client; out comes an apply.Set. It
// applies nothing to a workload cluster itself: package apply does.
package addon
