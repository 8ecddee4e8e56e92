// Package state is a sandbox's directory: where everything in it lies, and
// state.json, in which the daemon tells what it runs.
//
// The daemon writes the state whenever it changes; `up`, `status` and `down`
// read it, also after a crash of the daemon. Nothing in it is needed to start
// a new sandbox: what a crashed one leaves is thrown away, because vCenter's
// inventory lived in its memory.
package state
