package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/millwright-dev/millwright/internal/addon"
	"github.com/millwright-dev/millwright/internal/apply"
	"github.com/millwright-dev/millwright/internal/cli"
)

// uninstallOptions take an add-on off a cluster.
type uninstallOptions struct {
	*cli.Options
	target    targetFlags
	catalogue catalogueFlags

	name   string
	orphan bool
	yes    bool
	dryRun string
}

func newUninstallCommand(o *cli.Options) *cobra.Command {
	uninstall := &uninstallOptions{Options: o}
	cmd := &cobra.Command{
		Use:   "uninstall NAME",
		Short: "Take an add-on off a cluster",
		Long: templates.LongDesc(`
			Delete the objects of an add-on that this tool installed, custom resources and workloads first.

			Namespaces, CustomResourceDefinitions and PersistentVolumeClaims stay, and so does what
			another controller owns. With --orphan everything stays, and is only no longer managed.`),
		Example: templates.Examples(`
			# See what would be deleted, and what stays
			{{kubectl}} uninstall flannel --dry-run=server

			# Take an add-on off a workload cluster, without a question
			{{kubectl}} uninstall metrics-server --cluster prod --yes

			# Leave the objects to somebody else
			{{kubectl}} uninstall calico --orphan`),
		Args:              cli.OneArg("NAME"),
		ValidArgsFunction: completeName,
		RunE: func(cmd *cobra.Command, args []string) error {
			uninstall.name = args[0]
			if err := validateDryRun(uninstall.dryRun); err != nil {
				return err
			}
			return uninstall.run(cmd.Context())
		},
	}
	uninstall.target.addFlags(cmd, o)
	uninstall.catalogue.addFlags(cmd)
	cmd.Flags().BoolVar(&uninstall.orphan, "orphan", false, "Leave all objects in the cluster; only stop managing them.")
	cmd.Flags().BoolVarP(&uninstall.yes, "yes", "y", false, "Do not ask.")
	addDryRunFlag(cmd, &uninstall.dryRun)
	return cmd
}

func (o *uninstallOptions) run(ctx context.Context) error {
	target, err := o.target.connect(ctx, o.Options)
	if err != nil {
		return err
	}
	engine := &apply.Engine{Client: target.client, Done: func(id apply.ID, action apply.Action) { printRemoval(o.Out, id, action, "") }}
	record, err := engine.Record(ctx, o.name)
	if err != nil {
		return err
	}
	plan, err := engine.PlanUninstall(ctx, o.name, o.retained(ctx, record.Version))
	if err != nil {
		return err
	}
	if o.dryRun != dryRunNone {
		for _, removal := range plan.Removals {
			printRemoval(o.Out, removal.ID, o.action(removal.Action), dryRunSuffix(o.dryRun))
		}
		return nil
	}
	if o.orphan {
		if err := engine.Orphan(ctx, plan); err != nil {
			return err
		}
		return target.giveBack(ctx, o.Options, o.name)
	}
	what := fmt.Sprintf("%s on %s: %d objects will be deleted, %d stay", o.name, target.name, plan.Count(apply.ActionPrune), plan.Count(apply.ActionRetain))
	if err := o.Confirm(o.yes, what); err != nil {
		return err
	}
	if err := engine.Uninstall(ctx, plan); err != nil {
		return err
	}
	return target.giveBack(ctx, o.Options, o.name)
}

// action is what a removal comes to: nothing is pruned from what is orphaned.
func (o *uninstallOptions) action(action apply.Action) apply.Action {
	if o.orphan && action == apply.ActionPrune {
		return apply.ActionRetain
	}
	return action
}

// retained asks the catalogue what the installed version retains; an add-on that
// the catalogue has no more retains nothing beyond the kinds that always stay.
func (o *uninstallOptions) retained(ctx context.Context, version string) func(apply.ID) bool {
	entry, err := o.catalogue.find(ctx, o.name)
	if err != nil {
		return nil
	}
	v, err := entry.Version(version)
	if err != nil {
		return nil
	}
	return addon.Retains(v)
}
