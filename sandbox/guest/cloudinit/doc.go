// Package cloudinit does what cloud-init does on a machine that boots for the
// first time: it decodes the user data and metadata that VMware's guestinfo
// carries, renders jinja variables, reads a cloud-config, writes its files below
// the guest's root and runs its commands.
//
// Of the commands only those are carried out that stay inside the guest's root
// (kubeadm, mkdir, echo into a file, hostnamectl); the others are written to the
// console. What cloud-init refuses is refused here, in its words where they
// matter. The package does not know what kubeadm is: it calls a function.
package cloudinit
