// Package endurance holds the scenarios that take minutes: the operator is killed at random moments, nodes die, clusters
// are upgraded and restored. Like package e2e it knows the programs in bin/ and the objects in the API servers, and
// no Go package of the product.
//
// One sandbox serves the whole package; each test makes clusters of its own name and removes them. `make endurance`
// runs it; without ENDURANCE=1 every test skips itself, so that `make test` stays short.
package endurance
