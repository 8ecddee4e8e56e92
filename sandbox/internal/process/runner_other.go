//go:build unix && !linux

package process

import "syscall"

// childAttributes puts a child into a group of its own. There is no
// parent-death signal here: after a crash the records do the cleaning.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
