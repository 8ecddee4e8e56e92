// Package identity finds out how to log in at the vCenter of a VSphereCluster.
//
// In: a VSphereCluster whose identityRef names a Secret or a VSphereClusterIdentity. Out: an endpoint with credentials, or
// an error that says what is missing and where. It reads, and never writes.
package identity
