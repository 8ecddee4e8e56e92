// Package console writes a guest's serial console: lines with the seconds since
// power-on and the unit that speaks, as a Linux console has them. Output of code
// that prints to the process's own standard output (kubeadm's packages do) is
// turned onto it, with host paths turned back into the guest's.
package console
