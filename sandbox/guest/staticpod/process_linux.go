package staticpod

import "syscall"

// childAttributes lets a component die with the guest, even one that is killed.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
