// Package integration tests the operator's controllers against a real kube-apiserver, as what a user sees: objects,
// conditions and refusals.
//
// The controllers run in this process with the rights of the operator's service account. No vCenter and no machine is
// behind them: a test plays the infrastructure provider where it needs one.
package integration
