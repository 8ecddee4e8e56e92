package process

import "syscall"

// childAttributes puts a child into a group of its own and has the kernel end
// it when we die, however that happens.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
