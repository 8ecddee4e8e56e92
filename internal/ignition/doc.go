// Package ignition renders the user data of a machine whose image has Ignition instead of cloud-init (Flatcar, Fedora
// CoreOS): a configuration of specification 3.3, which images since 2022 read.
//
// The same input goes in as into package cloudinit. Ignition runs once, before the real root is in use: commands become
// a script that a unit runs, mounts become units, and nothing can be written below /run. What a KubeadmConfig asks for
// and Ignition cannot do is either refused, by an error that names the field, or told by Lost, where Cluster API says
// that it has no effect. Secrets that the spec refers to are resolved by the caller.
package ignition
