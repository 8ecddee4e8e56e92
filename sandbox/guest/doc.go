// Package guest is a simulated VM's inside, as one process: it boots from
// guestinfo, runs cloud-init and kubeadm once for an instance, then a hollow
// kubelet and the static pods of the control plane, and stops them when the
// machine is switched off.
//
// The packages below it, in reading order: rootfs (the file system), console,
// cloudinit, kubeadm, staticpod, kubelet. They do not know each other, but for
// rootfs and for kubelet, which reads the state of static pods; this package
// joins them. Events for the sandbox's daemon go to standard output, one JSON
// object a line; the serial console goes to standard error.
package guest
