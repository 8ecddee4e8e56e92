// Package process starts the sandbox's programs and can always tell its own
// from strangers: a process is named by its pid and the moment it started, so
// that a recorded pid which the kernel gave to somebody else is never signalled.
//
// In: a Spec (program, arguments, where its output goes). Out: a running
// Process, a record of it on disk for the next sandbox to clean up after a
// crash, and, through Supervise, one that is started again when it dies.
//
// It knows nothing of what the programs are for.
package process
