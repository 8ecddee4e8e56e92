package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/millwright-dev/millwright/internal/cli"
)

// rollbackOptions bring an add-on back to a revision that it had: an install
// whose version and parameters come from the record.
type rollbackOptions struct {
	installOptions
	revision int
}

func newRollbackCommand(o *cli.Options) *cobra.Command {
	rollback := &rollbackOptions{installOptions: installOptions{Options: o, back: true}}
	cmd := &cobra.Command{
		Use:   "rollback NAME",
		Short: "Bring an add-on back to the version that it had before",
		Long: templates.LongDesc(`
			Bring an add-on back to the version and the parameters that it had before, or to those of a revision
			that "{{kubectl}} history" shows.

			The way back is an install like any other: in stages, pruned once it is healthy, and what is never
			pruned stays. It is a revision of its own.`),
		Example: templates.Examples(`
			# Back to what was there before the last change
			{{kubectl}} rollback calico

			# See what going back to the second revision would change
			{{kubectl}} rollback calico --to-revision 2 --dry-run=server`),
		Args:              cli.OneArg("NAME"),
		ValidArgsFunction: completeName,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := rollback.complete(cmd.Context(), args); err != nil {
				return err
			}
			return rollback.run(cmd.Context())
		},
	}
	rollback.target.addFlags(cmd, o)
	rollback.bundle.catalogueFlags.addFlags(cmd)
	rollback.bundle.addMirrorFlag(cmd)
	rollback.facts.addFlags(cmd)
	rollback.addApplyFlags(cmd)
	cmd.Flags().IntVar(&rollback.revision, "to-revision", 0, "Revision to go back to; zero is the one before the current.")
	return cmd
}

func (o *rollbackOptions) complete(ctx context.Context, args []string) error {
	if o.revision < 0 {
		return cli.UsageErrorf("--to-revision must not be negative")
	}
	return o.installOptions.complete(ctx, args)
}

func (o *rollbackOptions) run(ctx context.Context) error {
	target, err := o.target.connect(ctx, o.Options)
	if err != nil {
		return err
	}
	name := o.wanted[0].addon.Name
	record, err := o.engine(target).Record(ctx, name)
	if err != nil {
		return err
	}
	revision, err := record.Revision(o.revision)
	if err != nil {
		return err
	}
	if _, err := o.wanted[0].addon.Version(revision.Version); err != nil {
		return fmt.Errorf("revision %d of %s: %w: go back with a release of this tool that has it", revision.Number, name, err)
	}
	o.wanted[0].version, o.wanted[0].values = revision.Version, revision.Parameters
	if o.wanted[0].custom, err = recordedCustomization(name, revision.Customization); err != nil {
		return err
	}
	fmt.Fprintf(o.ErrOut, "%s on %s goes back from %s to revision %d, %s.\n", name, target.name, record.Version, revision.Number, revision.Version)
	return o.installOn(ctx, target)
}
