// Package e2e runs the product as its users do: it starts a sandbox of its own
// (bin/sandbox up --dir), applies manifests with kubectl, and calls the plugins
// from PATH. It knows the programs in bin/ and the objects in the API servers,
// and no Go package of the product.
//
// One sandbox serves the whole package; each test makes clusters of its own
// name and removes them. `make e2e` builds what it needs first.
package e2e
