// Package app puts the operator together: flags, scheme, manager and controller groups.
//
// In: flags and a connection to the management cluster. Out: a manager that runs the controllers of the groups asked
// for, except those of which a live upstream controller exists.
//
// It decides nothing about machines; package main and the integration tests both start the operator through it.
package app
