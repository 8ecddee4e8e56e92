// Package addons is the catalogue: one folder an add-on, with addon.yaml and a
// plain kustomize folder for each version.
//
// What upstream publishes is named by its address and sha256 and never copied
// here; only add-ons without a published manifest are written out. The package
// holds data; internal/bundle reads and checks it. docs/addons.md has the format.
package addons
