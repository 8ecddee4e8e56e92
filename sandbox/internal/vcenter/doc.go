// Package vcenter is the sandbox's vCenter: govmomi's simulator with TLS, one
// user, an inventory and VM templates, made to behave where it matters to
// Millwright as a real one does.
//
// In: an address and a directory. Out: events of virtual machines (powered on,
// off, shut down, reset, destroyed) in the order in which they happened, told by
// the simulator's own hooks, never by polling. Coming back: what a guest
// would tell through VMware Tools, such as its address.
//
// It does not know what a guest is made of.
package vcenter
