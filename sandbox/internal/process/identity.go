package process

import (
	"errors"
	"syscall"
)

// Identity names one process for its whole life. A pid alone does not: the
// kernel uses it again.
type Identity struct {
	PID int `json:"pid"`
	// Start is the moment of the process's start in a form of the platform's
	// own; only equality means something.
	Start string `json:"start"`
}

// Identify returns the identity of the process that has this pid now. It fails
// where there is none, or only a zombie.
func Identify(pid int) (Identity, error) {
	start, err := startOf(pid)
	if err != nil {
		return Identity{}, err
	}
	return Identity{PID: pid, Start: start}, nil
}

// Alive says whether this very process still runs. A zombie does not.
func (i Identity) Alive() bool {
	if i.PID <= 0 || i.Start == "" {
		return false
	}
	now, err := Identify(i.PID)
	return err == nil && now == i
}

// Signal sends sig to the process if it still runs; that it is gone is no error.
func (i Identity) Signal(sig syscall.Signal) error {
	return i.send(i.PID, sig)
}

// SignalGroup sends sig to the process's group, which it must lead; that the
// process is gone is no error.
func (i Identity) SignalGroup(sig syscall.Signal) error {
	return i.send(-i.PID, sig)
}

func (i Identity) send(target int, sig syscall.Signal) error {
	if !i.Alive() {
		return nil
	}
	if err := syscall.Kill(target, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}
