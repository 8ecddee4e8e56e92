package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/millwright-dev/millwright/internal/apply"
	"github.com/millwright-dev/millwright/internal/cli"
)

// verifyOptions compare what a cluster has with what it should be made of.
type verifyOptions struct {
	installOptions
}

func newVerifyCommand(o *cli.Options) *cobra.Command {
	verify := &verifyOptions{installOptions{Options: o}}
	cmd := &cobra.Command{
		Use:   "verify [NAME...]",
		Short: "Check that installed add-ons are what their bundles say",
		Long: templates.LongDesc(`
			Render the recorded version of installed add-ons with the recorded parameters, from published files
			whose digests are checked, and compare each object with the live one. Unlike "{{kubectl}} status",
			which sees who took a field over, it sees the values.

			Exit code 1 where an object is missing or is another. "{{kubectl}} diff" shows how it differs.`),
		Example: templates.Examples(`
			# Is everything on the cluster as it was published?
			{{kubectl}} verify --cluster prod`),
		ValidArgsFunction: completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			return verify.run(cmd.Context(), args)
		},
	}
	verify.target.addFlags(cmd, o)
	verify.bundle.catalogueFlags.addFlags(cmd)
	verify.bundle.addMirrorFlag(cmd)
	verify.facts.addFlags(cmd)
	return cmd
}

func (o *verifyOptions) run(ctx context.Context, names []string) error {
	o.dryRun, o.forceConflicts, o.bundle.version = dryRunServer, true, autoVersion
	if err := o.complete(ctx, names); err != nil {
		return err
	}
	target, err := o.target.connect(ctx, o.Options)
	if err != nil {
		return err
	}
	engine := o.engine(target)
	if len(names) == 0 {
		catalogue, err := o.bundle.load(ctx)
		if err != nil {
			return err
		}
		if err := o.everything(ctx, engine, catalogue); err != nil {
			return err
		}
	}
	absent, err := o.asRecorded(ctx, engine)
	if err != nil {
		return err
	}
	if len(absent) > 0 {
		return &apply.NotInstalledError{Set: absent[0]}
	}
	sets, err := o.renderAll(ctx, engine, target)
	if err != nil {
		return err
	}
	wrong := 0
	for _, set := range sets {
		plan, err := o.plan(ctx, engine, target, set)
		if err != nil {
			return err
		}
		found := 0
		for _, change := range plan.Changes {
			if word := difference(change); word != "" {
				fmt.Fprintf(o.Out, "%s %s\n", change.ID, word)
				found++
			}
		}
		if found == 0 {
			fmt.Fprintf(o.Out, "%s %s: %d objects are as published\n", set.Addon.Name, set.Version.Version, len(plan.Changes))
		}
		wrong += found
	}
	if wrong > 0 {
		return fmt.Errorf("%d objects on %s are not as published: see %s diff", wrong, target.name, o.Typed())
	}
	return nil
}

// difference words how a live object is another; empty where it is not.
func difference(change apply.Change) string {
	switch change.Action {
	case apply.ActionUnchanged:
		return ""
	case apply.ActionCreate:
		return "is missing"
	}
	if text, err := unified(change.ID, "", comparable(change.Before()), comparable(change.After())); err == nil && text == "" {
		return ""
	}
	return "differs"
}
