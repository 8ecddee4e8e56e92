// Package addons tests the engine of add-ons and the catalogue against a real kube-apiserver: what is written, what is
// not, what is pruned, and whose fields are respected.
//
// No controller runs behind the API server: a test that needs health writes the status itself.
package addons
