//go:build !linux

package staticpod

import "syscall"

// childAttributes leaves it to the guest's process group that a component dies
// with the guest.
func childAttributes() *syscall.SysProcAttr { return nil }
