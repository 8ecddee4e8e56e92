package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/millwright-dev/millwright/sandbox/internal/build"
	"github.com/millwright-dev/millwright/sandbox/internal/state"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := newCommand().ExecuteContext(ctx)
	if err == nil {
		return
	}
	fmt.Fprintf(os.Stderr, "error: %v\n", err)
	var usage usageError
	if errors.As(err, &usage) {
		os.Exit(2)
	}
	os.Exit(1)
}

// usageError is a mistake in the command line.
type usageError struct{ error }

// options are what all commands share.
type options struct{ dir string }

// open returns the sandbox's directory.
func (o *options) open() (state.Dir, error) { return state.Open(o.dir) }

func newCommand() *cobra.Command {
	o := &options{}
	root := &cobra.Command{
		Use:   "sandbox",
		Short: "Run a management cluster, a vCenter and its virtual machines on this machine",
		Long: "Runs a whole fleet on this machine with nothing but Go: a management cluster with Millwright installed, a simulated vCenter, " +
			"and for each virtual machine that is powered on a guest that does what cloud-init, kubeadm and a kubelet would do.\n\n" +
			"Everything lives in one directory (--dir); several sandboxes with different directories run side by side.",
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w\nSee '%s --help'", err, cmd.CommandPath())}
	})
	root.PersistentFlags().StringVar(&o.dir, "dir", ".sandbox", "directory of the sandbox")
	root.AddCommand(newUp(o), newDown(o), newStatus(o), newLogs(o), newAddress(o), newFill(), newBuild(), newDaemon(o))
	return root
}

// arguments makes what a check of arguments finds a usage error.
func arguments(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usageError{fmt.Errorf("%w\nUsage: %s", err, cmd.UseLine())}
		}
		return nil
	}
}

// newBuilder returns a builder that tells its progress on standard error.
func newBuilder() (build.Builder, error) {
	source, err := build.Find()
	if err != nil {
		return build.Builder{}, err
	}
	cache, err := build.OpenCache()
	return build.Builder{Source: source, Cache: cache, Progress: os.Stderr}, err
}
