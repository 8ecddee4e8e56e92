package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/drain"
	"k8s.io/kubectl/pkg/util/templates"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/cli"
)

// cordonOptions mark the Nodes of machines as unschedulable, or as schedulable again.
type cordonOptions struct {
	*cli.Options
	changeFlags

	cordon    bool
	names     []string
	namespace string
	client    client.WithWatch
}

func newCordonCommand(o *cli.Options) *cobra.Command {
	return newCordonLike(o, true, &cobra.Command{
		Use:   "cordon MACHINE...",
		Short: "Keep new pods off the nodes of machines",
		Long: templates.LongDesc(`
			Mark the nodes of machines as unschedulable, in their workload cluster. Pods that run there stay.`),
		Example: templates.Examples(`
			# Keep new pods off a machine
			{{kubectl}} cordon prod-md-0-x7k2p`),
	})
}

func newUncordonCommand(o *cli.Options) *cobra.Command {
	return newCordonLike(o, false, &cobra.Command{
		Use:   "uncordon MACHINE...",
		Short: "Let new pods on the nodes of machines again",
		Long: templates.LongDesc(`
			Mark the nodes of machines as schedulable again, in their workload cluster.`),
		Example: templates.Examples(`
			# Let new pods on a machine again
			{{kubectl}} uncordon prod-md-0-x7k2p`),
	})
}

func newCordonLike(o *cli.Options, on bool, cmd *cobra.Command) *cobra.Command {
	cordon := &cordonOptions{Options: o, cordon: on}
	cmd.Args = cli.AtLeastOneArg("MACHINE")
	cmd.ValidArgsFunction = o.CompleteNames(machineNames)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := cordon.validateArgs(args); err != nil {
			return err
		}
		if err := cordon.complete(cmd.Context()); err != nil {
			return err
		}
		return cordon.run(cmd.Context())
	}
	cordon.addDryRun(cmd)
	return cmd
}

func (o *cordonOptions) validateArgs(args []string) error {
	for _, arg := range args {
		name, err := machineArgument(arg)
		if err != nil {
			return err
		}
		o.names = append(o.names, name)
	}
	return o.validate()
}

func (o *cordonOptions) complete(ctx context.Context) error {
	var err error
	if o.namespace, err = o.Namespace(); err != nil {
		return err
	}
	o.client, err = o.ClusterAPI(ctx)
	return err
}

func (o *cordonOptions) run(ctx context.Context) error {
	var errs []error
	for _, name := range o.names {
		m, err := readMachineNode(ctx, o.client, client.ObjectKey{Namespace: o.namespace, Name: name})
		if err == nil {
			err = setCordon(ctx, o.Options, &o.changeFlags, m, o.cordon)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// setCordon marks the Node, and says so as kubectl does, unless it is as wanted already.
func setCordon(ctx context.Context, o *cli.Options, flags *changeFlags, m machineNode, on bool) error {
	word := "uncordoned"
	if on {
		word = "cordoned"
	}
	helper := drain.NewCordonHelper(m.node.DeepCopy())
	if !helper.UpdateIfRequired(on) {
		fmt.Fprintf(o.Out, "node/%s already %s%s\n", m.node.Name, word, flags.mode())
		return nil
	}
	if flags.dryRun != dryRunClient {
		err, patchErr := helper.PatchOrReplaceWithContext(ctx, m.client, flags.dryRun == dryRunServer)
		if err != nil {
			return fmt.Errorf("machine %q: mark node %q as %s: %w", m.machine.Name, m.node.Name, word, errors.Join(err, patchErr))
		}
	}
	fmt.Fprintf(o.Out, "node/%s %s%s\n", m.node.Name, word, flags.mode())
	return nil
}
