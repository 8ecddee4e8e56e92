// Package vcenter talks to vCenter: sessions, inventory lookups, and the life of a virtual machine.
//
// A Pool holds one Session per server, thumbprint and credentials, shared by all clusters that use them. Session methods
// take names as a user wrote them and return typed errors that name the object, the cause and the next step. Every
// change is safe to repeat: a virtual machine is known by its instance UUID, which is the UID of the object that wants it.
// Tasks and virtual machines in motion are followed by one property collector per session, which reports changes to the
// owners given to it; nothing is polled.
//
// The package knows nothing of Kubernetes objects: owners are opaque keys.
package vcenter
