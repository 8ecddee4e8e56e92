// Command sandbox runs a whole fleet on one machine: a management cluster, a
// vCenter and virtual machines whose guests run kubeadm's own code.
//
// One file a command. `up` builds what is missing and starts `daemon` detached,
// which is the sandbox; the others read what the daemon has written into the
// sandbox's directory.
package main
