// Command kubectl-machines is the kubectl plugin for clusters and their machines:
// one file a command, each an Options struct with Complete, Validate and Run.
//
// In come Cluster API v1beta2 objects of a management cluster, of our operator or
// of upstream's controllers; out go tables, trees and writes to spec fields, never
// a write to status. What decides is in internal/graph and internal/lifecycle.
package main
