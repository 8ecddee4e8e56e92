package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/millwright-dev/millwright/internal/cli"
)

// etcdSnapshotOptions copy the database of an etcd into a file.
type etcdSnapshotOptions struct {
	etcdTarget
	file    string
	force   bool
	timeout time.Duration
}

func newEtcdSnapshotCommand(o *cli.Options) *cobra.Command {
	snapshot := &etcdSnapshotOptions{etcdTarget: etcdTarget{Options: o}}
	cmd := &cobra.Command{
		Use:   "snapshot CLUSTER -f FILE",
		Short: "Copy the etcd of a cluster into a file",
		Long: templates.LongDesc(`
			Copy all that the API server of a cluster keeps in etcd into a file, which "etcdutl snapshot restore" reads.

			The copy is taken from a follower where there is one. It ends in a hash, which is checked before the file
			gets its name: a file of that name is whole. It holds every Secret of the cluster: only you can read it.`),
		Example: templates.Examples(`
			# Keep a copy
			{{kubectl}} etcd snapshot prod -f prod.db

			# Put a newer one in its place
			{{kubectl}} etcd snapshot prod -f prod.db --force`),
		Args:              cli.OneArg("CLUSTER"),
		ValidArgsFunction: o.CompleteFirst(clusterNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := snapshot.validate(); err != nil {
				return err
			}
			if err := snapshot.complete(cmd.Context(), args[0]); err != nil {
				return err
			}
			return snapshot.run(cmd.Context())
		},
	}
	cmd.Flags().StringVarP(&snapshot.file, "filename", "f", "", "The file to write.")
	cmd.Flags().BoolVar(&snapshot.force, "force", false, "Replace the file if there is one.")
	cmd.Flags().DurationVar(&snapshot.timeout, "timeout", 10*time.Minute, "How long the copy may take; 0 is for ever.")
	_ = cmd.MarkFlagFilename("filename")
	cli.RequireFlag(cmd, "filename", "FILE")
	return cmd
}

func (o *etcdSnapshotOptions) validate() error {
	switch {
	case o.file == "":
		return cli.UsageErrorf("--filename must not be empty")
	case o.timeout < 0:
		return cli.UsageErrorf("--timeout must not be negative")
	}
	info, err := os.Stat(o.file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("look at the file to write: %w", err)
	case !info.Mode().IsRegular():
		return cli.UsageErrorf("--filename %s is no file", o.file)
	case !o.force:
		return fmt.Errorf("%s exists already: choose another name, or replace it with --force", o.file)
	}
	return nil
}

func (o *etcdSnapshotOptions) run(ctx context.Context) error {
	members, err := o.members(ctx)
	if err != nil {
		return err
	}
	source, err := snapshotSource(members)
	if err != nil {
		return fmt.Errorf("cluster %q: %w", o.cluster.Name, err)
	}
	copying := ctx
	if o.timeout > 0 {
		var cancel context.CancelFunc
		copying, cancel = context.WithTimeout(ctx, o.timeout)
		defer cancel()
	}
	member, err := o.dial(source.node)
	if err != nil {
		return err
	}
	defer member.Close()
	progress := o.NewProgress()
	defer progress.Close()
	size, err := writeWhole(o.file, o.force, func(out io.Writer) (int64, error) {
		return member.Snapshot(copying, io.MultiWriter(out, &copied{progress: progress, member: source.node, of: source.report.Size}))
	})
	if err != nil && ctx.Err() == nil && errors.Is(copying.Err(), context.DeadlineExceeded) {
		return &cli.TimeoutError{After: o.timeout, Missing: fmt.Sprintf("the copy of cluster %q was not whole, and was thrown away", o.cluster.Name)}
	}
	if err != nil {
		return fmt.Errorf("cluster %q: %w", o.cluster.Name, err)
	}
	fmt.Fprintf(o.Out, "%s written: %s of member %s, revision %d or later, etcd %s, hash verified\n",
		o.file, bytesText(size), source.node, source.report.Revision, source.report.Version)
	return nil
}

// writeWhole gives a file its name only once write has succeeded and its content is on the disk. Without replace it
// never takes the place of another file, not even of one that appeared meanwhile.
func writeWhole(path string, replace bool, write func(io.Writer) (int64, error)) (int64, error) {
	// Created by CreateTemp with mode 0600.
	temporary, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.part")
	if err != nil {
		return 0, fmt.Errorf("create a file: %w", err)
	}
	defer os.Remove(temporary.Name())
	size, err := write(temporary)
	if err == nil {
		err = temporary.Sync()
	}
	if closeErr := temporary.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return size, err
	}
	if replace {
		err = os.Rename(temporary.Name(), path)
	} else {
		err = os.Link(temporary.Name(), path)
	}
	if errors.Is(err, fs.ErrExist) {
		return size, fmt.Errorf("%s has come to exist meanwhile: choose another name, or replace it with --force", path)
	}
	if err != nil {
		return size, fmt.Errorf("name the file: %w", err)
	}
	return size, nil
}

// copied shows how much of a snapshot has come.
type copied struct {
	progress *cli.Progress
	member   string
	of, got  int64
	tenth    int64
}

func (c *copied) Write(p []byte) (int, error) {
	c.got += int64(len(p))
	text := fmt.Sprintf("copying member %s: %s of about %s", c.member, bytesText(c.got), bytesText(c.of))
	view := cli.View{Screen: []string{text}}
	if tenth := c.got * 10 / max(c.of, 1); tenth > c.tenth {
		c.tenth, view.Changes = tenth, []string{text}
	}
	c.progress.Show(view)
	return len(p), nil
}
