package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/millwright-dev/millwright/sandbox/internal/filelock"
	"github.com/millwright-dev/millwright/sandbox/internal/state"
)

func newDown(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "Stop the sandbox and remove it, all but its logs",
		Args:  arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := o.open()
			if err != nil {
				return err
			}
			return down(cmd.Context(), dir, cmd.ErrOrStderr())
		},
	}
}

func down(ctx context.Context, dir state.Dir, progress io.Writer) error {
	if !dir.Exists() {
		fmt.Fprintf(progress, "no sandbox in %s\n", dir)
		return nil
	}
	lock, err := filelock.Acquire(ctx, dir.Lock(), func() { fmt.Fprintf(progress, "waiting: another `sandbox` works on %s\n", dir) })
	if err != nil {
		return err
	}
	defer lock.Release()

	s, err := dir.Load()
	if err != nil && !errors.Is(err, state.ErrNone) {
		return err
	}
	if daemon := s.Daemon; daemon.Alive() {
		if err := daemon.Signal(syscall.SIGTERM); err != nil {
			return fmt.Errorf("stop the sandbox's daemon (pid %d): %w", daemon.PID, err)
		}
		if !daemon.WaitGone(stopTimeout) {
			fmt.Fprintf(progress, "the daemon (pid %d) does not end: killing it\n", daemon.PID)
			if err := daemon.Signal(syscall.SIGKILL); err != nil {
				return err
			}
			daemon.WaitGone(stopTimeout)
		}
	}
	killed, err := dir.Records().KillAll(stopTimeout)
	if err != nil {
		return err
	}
	if len(killed) > 0 {
		fmt.Fprintf(progress, "ended %d processes that were left: %v\n", len(killed), killed)
	}
	if err := dir.Clear(); err != nil {
		return err
	}
	fmt.Fprintf(progress, "the sandbox is stopped and removed; its logs stay in %s\n", dir.Logs())
	return nil
}
