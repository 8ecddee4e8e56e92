package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// Spec says what to start.
type Spec struct {
	// Name is unique among the processes of a sandbox.
	Name string
	Path string
	Args []string
	// Env is the whole environment; nil means our own.
	Env []string
	Dir string
	// Stdin, Stdout and Stderr may be nil: the null device.
	Stdin, Stdout, Stderr *os.File
}

// Process is a child that was started. It leads a process group of its own.
type Process struct {
	Identity
	Name string
	done chan struct{}
	err  error
}

// Done is closed when the process has ended and what was left of its group is
// ended too.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err says how it ended; nil for exit code 0. Valid once Done is closed.
func (p *Process) Err() error { return p.err }

// Terminate asks the process to end.
func (p *Process) Terminate() error { return p.Signal(syscall.SIGTERM) }

// Kill ends the process and all of its group at once.
func (p *Process) Kill() error { return p.SignalGroup(syscall.SIGKILL) }

// Runner starts processes that do not outlive us.
type Runner struct {
	records  Records
	requests chan request
}

type request struct {
	cmd   *exec.Cmd
	reply chan error
}

// NewRunner returns a Runner that keeps its records in dir, which must exist.
func NewRunner(dir string) *Runner {
	r := &Runner{records: Records(dir), requests: make(chan request)}
	go r.spawn()
	return r
}

// spawn starts all children from one thread that lives as long as we do: on
// Linux the parent-death signal is sent when the starting thread ends, which
// for a goroutine's thread can be at any time.
func (r *Runner) spawn() {
	runtime.LockOSThread()
	for req := range r.requests {
		req.reply <- req.cmd.Start()
	}
}

// Start starts spec.
func (r *Runner) Start(spec Spec) (*Process, error) {
	cmd := exec.Command(spec.Path, spec.Args...)
	cmd.Env, cmd.Dir = spec.Env, spec.Dir
	// A typed nil in an io.Reader would not be the null device.
	if spec.Stdin != nil {
		cmd.Stdin = spec.Stdin
	}
	if spec.Stdout != nil {
		cmd.Stdout = spec.Stdout
	}
	if spec.Stderr != nil {
		cmd.Stderr = spec.Stderr
	}
	cmd.SysProcAttr = childAttributes()

	req := request{cmd: cmd, reply: make(chan error)}
	r.requests <- req
	if err := <-req.reply; err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	id, err := Identify(cmd.Process.Pid)
	if err != nil {
		// It has ended already; Wait below reports how.
		id = Identity{PID: cmd.Process.Pid}
	}
	p := &Process{Identity: id, Name: spec.Name, done: make(chan struct{})}
	recordErr := r.records.Put(Record{Identity: id, Name: spec.Name, Group: true})
	go func() {
		p.err = cmd.Wait()
		// The leader is gone; nobody else has its group's number while a member lives.
		if err := syscall.Kill(-id.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) && p.err == nil {
			p.err = err
		}
		if err := r.records.Remove(spec.Name); err != nil && p.err == nil {
			p.err = err
		}
		close(p.done)
	}()
	if recordErr != nil {
		_ = p.Kill()
		<-p.done
		return nil, fmt.Errorf("record %s: %w", spec.Name, recordErr)
	}
	return p, nil
}
