package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/millwright-dev/millwright/sandbox/internal/state"
)

// stopTimeout bounds how long a daemon may take to stop its children.
const stopTimeout = 20 * time.Second

// start starts the daemon detached and waits until it is ready. It is stopped
// again when that fails or is called off.
func (o *upOptions) start(ctx context.Context, dir state.Dir, progress io.Writer) error {
	if err := cleanUp(dir, progress); err != nil {
		return err
	}
	if err := dir.SetLogsAside(); err != nil {
		return err
	}
	if err := dir.Create(); err != nil {
		return err
	}
	log, err := os.OpenFile(dir.Log("daemon"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd, err := o.daemon(dir)
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = log, log
	keepDescriptors()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the daemon: %w", err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	err = wait(ctx, dir, progress, func() bool {
		select {
		case <-ended:
			return false
		default:
			return true
		}
	})
	if err == nil {
		return nil
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-ended:
	case <-time.After(stopTimeout):
		_ = cmd.Process.Kill()
		<-ended
	}
	return errors.Join(err, cleanUp(dir, io.Discard))
}

// daemon is the command that is the sandbox.
func (o *upOptions) daemon(dir state.Dir) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args := []string{"daemon", "--dir", string(dir), "--built-guest", o.builtGuest,
		"--guests", string(o.guests), fmt.Sprintf("--audit=%v", o.audit)}
	for flag, path := range map[string]string{"--operator": o.operator, "--guest": o.guest, "--manifests": o.manifests} {
		if path != "" && path != noOperator {
			if path, err = filepath.Abs(path); err != nil {
				return nil, err
			}
		}
		args = append(args, flag, path)
	}
	cmd := exec.Command(self, args...)
	// What libraries leave in the temporary directory goes with the sandbox.
	cmd.Env = append(os.Environ(), "TMPDIR="+dir.Temp())
	// Ctrl-C in our terminal is not meant for it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd, nil
}

// keepDescriptors keeps from the daemon what our caller left open for us, such
// as a lock or the end of a pipe: it would hold them as long as it runs.
func keepDescriptors() {
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		return
	}
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
}

// wait follows the daemon's state until it is ready, and prints each step as
// it is done.
func wait(ctx context.Context, dir state.Dir, progress io.Writer, alive func() bool) error {
	printed := map[string]bool{}
	for {
		running := alive()
		s, err := dir.Load()
		if err != nil && !errors.Is(err, state.ErrNone) {
			return err
		}
		for _, step := range s.Steps {
			if step.Done && !printed[step.Name] {
				printed[step.Name] = true
				printStep(progress, step.Name, step.Took, step.Note)
			}
		}
		switch {
		case s.Error != "":
			return fmt.Errorf("the sandbox did not come up: %s\nSee %s", s.Error, dir.Logs())
		case s.Ready:
			return nil
		case !running:
			return fmt.Errorf("the sandbox's daemon has ended: see %s", dir.Log("daemon"))
		}
		select {
		case <-ctx.Done():
			return errors.New("called off before the sandbox was ready")
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func printStep(w io.Writer, name string, took time.Duration, note string) {
	line := fmt.Sprintf("%-18s  ready after %4.1fs  %s", name, took.Seconds(), note)
	fmt.Fprintln(w, strings.TrimRight(line, " "))
}

// cleanUp takes away what a sandbox that did not end properly has left: its
// processes and its state. vCenter's inventory was in its memory, so there is
// nothing to go on with.
func cleanUp(dir state.Dir, progress io.Writer) error {
	killed, err := dir.Records().KillAll(stopTimeout)
	if err != nil {
		return err
	}
	if len(killed) > 0 {
		fmt.Fprintf(progress, "ended %d processes of a sandbox that crashed: %v\n", len(killed), killed)
	}
	if _, err := dir.Load(); !errors.Is(err, state.ErrNone) {
		fmt.Fprintf(progress, "threw away the state of a sandbox that crashed; its logs are in %s\n", dir.OldLogs())
	}
	return dir.Clear()
}
