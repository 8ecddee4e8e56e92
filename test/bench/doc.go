// Package bench measures what a fleet costs: requests by verb and resource,
// conflicts, the operator's processor time and memory, as machines go from none
// to many and while nothing happens.
//
// In: a sandbox with instant guests, so that machines cost nothing themselves,
// and the audit logs of its API servers. Out: a report on standard output, and a
// failure for each goal that is missed. Goals are counts and ratios, never
// seconds: those depend on the computer. `make bench` runs it; its own parts are
// tested by every `go test`.
package bench
