package staticpod

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// spawner starts all processes from one thread that lives as long as they do:
// on Linux a child's death signal is tied to the thread that started it.
type spawner struct {
	requests chan func()
}

func newSpawner() *spawner {
	s := &spawner{requests: make(chan func())}
	go func() {
		runtime.LockOSThread()
		for request := range s.requests {
			request()
		}
	}()
	return s
}

// close ends the thread, and with it, on Linux, what it started.
func (s *spawner) close() { close(s.requests) }

// process is one run of a program.
type process struct {
	cmd     *exec.Cmd
	started time.Time
	done    chan struct{}
	// code is the exit code, valid after done: 128 + signal when one ended it.
	code int
}

// start runs the program in dir with its output appended to the file at log.
func (s *spawner) start(program Program, dir, log string) (*process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o640)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	defer out.Close()
	cmd := exec.Command(program.Path, program.Args...)
	cmd.Dir = dir
	cmd.Env = append([]string{"PATH=/usr/bin:/bin", "HOME=" + dir, "TMPDIR=" + os.TempDir()}, program.Env...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = childAttributes()
	result := make(chan error)
	s.requests <- func() { result <- cmd.Start() }
	if err := <-result; err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, started: time.Now(), done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.code = exitCode(cmd.Wait())
	}()
	return p, nil
}

// stop asks the process to end and kills it after the grace period.
func (p *process) stop(grace time.Duration) {
	if p.cmd.Process.Signal(syscall.SIGTERM) != nil {
		_ = p.cmd.Process.Kill()
	}
	select {
	case <-p.done:
	case <-time.After(grace):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

func exitCode(err error) int {
	if err == nil {
		return 0
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return 255
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return exit.ExitCode()
}
