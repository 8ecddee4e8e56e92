// Command operator reconciles the objects of a management cluster: clusters, their machines and add-ons.
//
// In: flags and a kubeconfig, or the service account of its pod. Out: an exit code, 0 after a signal. All that it does
// is put together in package app; the controllers are in the folders beside this file.
package main
