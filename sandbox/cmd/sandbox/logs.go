package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/millwright-dev/millwright/sandbox/internal/state"
)

func newLogs(o *options) *cobra.Command {
	var follow bool
	cmd := &cobra.Command{
		Use:   "logs NAME",
		Short: "Print the log of a program, or the serial console of a virtual machine",
		Long: "Prints a log: operator, etcd, kube-apiserver, kube-controller-manager, daemon, audit, or the name of a virtual machine for its serial console. " +
			"Logs stay after `sandbox down`.",
		Example: "  bin/sandbox logs operator -f\n  bin/sandbox logs demo-md-0-abcde-x2x4z",
		Args:    arguments(cobra.ExactArgs(1)),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			dir, err := o.open()
			if err != nil {
				return nil, cobra.ShellCompDirectiveError
			}
			return logNames(dir), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := o.open()
			if err != nil {
				return err
			}
			path, err := findLog(dir, args[0])
			if err != nil {
				return err
			}
			return printLog(cmd.Context(), cmd.OutOrStdout(), path, follow)
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "print what is added, until interrupted")
	return cmd
}

// findLog returns the file of a log; a machine of a program's name is not found
// by it, but nobody calls one etcd.
func findLog(dir state.Dir, name string) (string, error) {
	for _, path := range []string{dir.Log(name), dir.MachineLog(name)} {
		if _, err := os.Stat(path); err == nil && filepath.Base(name) == name {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s has no log %q: there are %s", dir, name, strings.Join(logNames(dir), ", "))
}

func logNames(dir state.Dir) []string {
	var names []string
	for _, pattern := range []string{dir.Log("*"), dir.MachineLog("*")} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			continue
		}
		for _, f := range files {
			names = append(names, strings.TrimSuffix(filepath.Base(f), ".log"))
		}
	}
	return names
}

// printLog copies a file, and with follow goes on with what is appended.
func printLog(ctx context.Context, w io.Writer, path string, follow bool) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for {
		if _, err := io.Copy(w, f); err != nil {
			return err
		}
		if !follow {
			return nil
		}
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return nil
			}
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}
