// Package patch writes what a controller changed on an object, and nothing else.
//
// In: the object as it was read and the object as it should be. Out: at most one merge patch of metadata and spec
// and one JSON patch of status; no request at all when nothing changed.
//
// Several controllers own conditions of the same object (a Machine has some from its own controller, some from its
// MachineSet or control plane). A merge patch would replace the whole list, so status is written by position, each
// position tested first: writers of different conditions never undo each other and never conflict in the steady state.
//
// The package knows nothing of any kind of object.
package patch
