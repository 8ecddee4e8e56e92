// Package contract reads and writes the fields that the Cluster API contract (v1beta2) puts on anybody's objects:
// infrastructure, bootstrap and control-plane objects of a provider that this module does not know as a Go type.
//
// In: references and unstructured objects. Out: their contract fields, and new objects cloned from templates; package
// watches has the watches on kinds that become known only while the operator runs. The version of a kind comes from the label of its CRD
// ("cluster.x-k8s.io/v1beta2"), as upstream's book says under "contracts".
//
// It must not import a provider's types, and it decides nothing.
package contract
