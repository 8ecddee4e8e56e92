// Package cluster reconciles VSphereClusters: it logs in at vCenter, keeps the Secret with the credentials for as long as
// the cluster needs it, and offers deployment zones as failure domains.
//
// In: a VSphereCluster, its Cluster, its credentials, VSphereDeploymentZones. Out: conditions, failure domains, and
// status.initialization.provisioned, on which Cluster API waits before it creates machines.
//
// Nothing is created in vCenter for a cluster; its machines are the business of package machine.
package cluster
