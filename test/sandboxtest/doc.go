// Package sandboxtest gives a test package a sandbox that all its tests share: Main starts one (bin/sandbox up --dir),
// runs the tests and ends it.
//
// In: the programs in bin/ and the cached Kubernetes binaries. Out: a Sandbox that runs commands as a user would, waits
// for what they lead to, looks into the vCenter, watches Machines from outside, and does harm: it kills the operator
// and guests. Only tests import it. It knows no controller of this repository.
package sandboxtest
