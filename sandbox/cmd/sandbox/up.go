package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/millwright-dev/millwright/sandbox/internal/build"
	"github.com/millwright-dev/millwright/sandbox/internal/filelock"
	"github.com/millwright-dev/millwright/sandbox/internal/state"
)

// upOptions say what to bring up; they are handed on to the daemon.
type upOptions struct {
	*options
	operator, guest, manifests string
	// guests is how they run: guestsProcess or guestsInstant.
	guests guestsMode
	audit  bool
	// builtGuest is what `up` hands to the daemon and nobody else gives.
	builtGuest string
}

func (o *upOptions) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.operator, "operator", "", "operator to run (default bin/operator of the checkout; \"none\" runs none)")
	cmd.Flags().StringVar(&o.guest, "guest", "", "guest to run in each machine, instead of the one built from source")
	cmd.Flags().StringVar(&o.manifests, "manifests", "", "kustomization to install (default manifests/default of the checkout)")
	o.guests = guestsProcess
	if mode := os.Getenv("SANDBOX_GUESTS"); mode != "" {
		o.guests = guestsMode(mode)
	}
	cmd.Flags().Var(&o.guests, "guests", "what runs in a machine: process (cloud-init, kubeadm, a control plane), or instant (a Node of one shared API server, "+
		"at no cost); the default is $SANDBOX_GUESTS, if set")
	cmd.Flags().BoolVar(&o.audit, "audit", false, "note each request to the API servers in logs/audit.log and logs/workload-audit.log")
}

func newUp(shared *options) *cobra.Command {
	o := &upOptions{options: shared}
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start the sandbox in the background and wait until it is ready",
		Long: "Builds what is not built yet, starts the sandbox in the background, waits until all of it is ready and prints what to export. " +
			"Where the sandbox already runs it prints the same again.",
		Example: "  eval \"$(bin/sandbox up)\"",
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.guests.Set(string(o.guests)); err != nil {
				return usageError{fmt.Errorf("SANDBOX_GUESTS: %w", err)}
			}
			return o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o.addFlags(cmd)
	return cmd
}

func (o *upOptions) run(ctx context.Context, out, progress io.Writer) error {
	dir, err := o.open()
	if err != nil {
		return err
	}
	builder, err := newBuilder()
	if err != nil {
		return err
	}
	lock, err := filelock.Acquire(ctx, dir.Lock(), func() { fmt.Fprintf(progress, "waiting: another `sandbox` works on %s\n", dir) })
	if err != nil {
		return err
	}
	defer lock.Release()

	if s, err := dir.Load(); err == nil && s.Daemon.Alive() {
		fmt.Fprintf(progress, "the sandbox of %s runs already (pid %d)\n", dir, s.Daemon.PID)
		// If it is not ready yet, whoever started it did not wait for it.
		err = wait(ctx, dir, progress, s.Daemon.Alive)
		if err == nil {
			printExports(out, dir, builder.Source)
		}
		return err
	}
	began := time.Now()
	if err := o.build(ctx, builder); err != nil {
		return err
	}
	printStep(progress, "programs", time.Since(began), "")
	if err := o.start(ctx, dir, progress); err != nil {
		return err
	}
	printStep(progress, "all", time.Since(began), string(dir))
	printExports(out, dir, builder.Source)
	return nil
}

// build builds everything that the sandbox will run, while there is somebody
// to see the progress.
func (o *upOptions) build(ctx context.Context, b build.Builder) error {
	if _, err := b.Kubernetes(ctx, build.DefaultVersion); err != nil {
		return err
	}
	if o.guest == "" && o.guests == guestsProcess {
		guest, err := b.Guest(ctx, build.DefaultVersion)
		if err != nil {
			return err
		}
		o.builtGuest = guest
	}
	if _, err := b.Kubectl(ctx); err != nil {
		return err
	}
	if o.operator == "" {
		if _, err := b.Operator(ctx); err != nil {
			return err
		}
	}
	return nil
}

// printExports prints what a shell needs; it can be evaluated.
func printExports(w io.Writer, dir state.Dir, source build.Source) {
	fmt.Fprintf(w, "export KUBECONFIG=%s\n", quote(dir.Kubeconfig()))
	fmt.Fprintf(w, "export PATH=%s:$PATH\n", quote(filepath.Dir(source.Bin("sandbox"))))
	fmt.Fprintf(w, "source %s\n", quote(dir.VSphereEnv()))
}

// quote quotes a path for a POSIX shell where it needs to be.
func quote(path string) string {
	if strings.Trim(path, "/.-_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == "" {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
