package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/util/templates"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/cli"
)

func newRolloutCommand(o *cli.Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rollout COMMAND",
		Short: "Look after the replacement of a MachineDeployment's machines",
		Long: templates.LongDesc(`
			Look after the replacement of the machines of a MachineDeployment, as kubectl rollout does for pods.

			A change of what machines are made from makes a new revision: a MachineSet whose machines take the
			places of the others, a few at a time. Earlier revisions are kept without machines.`),
		Example: templates.Examples(`
			# Watch a rollout until it is done
			{{kubectl}} rollout status prod-md-0

			# Go back to what was before
			{{kubectl}} rollout undo prod-md-0`),
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newRolloutStatusCommand(o), newRolloutHistoryCommand(o), newRolloutUndoCommand(o),
		newRolloutRestartCommand(o), newRolloutPauseCommand(o), newRolloutResumeCommand(o))
	return cmd
}

// rolloutTarget is the MachineDeployment that a command is about.
type rolloutTarget struct {
	*cli.Options

	target     target
	client     client.WithWatch
	deployment *clusterv1.MachineDeployment
	cluster    *clusterv1.Cluster
}

// validateTarget reads NAME, or machinedeployment/NAME.
func (o *rolloutTarget) validateTarget(arg string) error {
	named, err := parseTarget(arg)
	if err != nil || named.kind != kindDeployment {
		return cli.UsageErrorf("%q has no rollout to look after: give the name of a MachineDeployment", arg)
	}
	o.target = named
	return nil
}

func (o *rolloutTarget) complete(ctx context.Context) error {
	namespace, err := o.Namespace()
	if err != nil {
		return err
	}
	if o.client, err = o.ClusterAPI(ctx); err != nil {
		return err
	}
	obj, err := readTarget(ctx, o.Options, o.client, o.target, namespace)
	if err != nil {
		return err
	}
	o.deployment = obj.(*clusterv1.MachineDeployment)
	o.cluster, err = getCluster(ctx, o.client, client.ObjectKey{Namespace: namespace, Name: o.deployment.Spec.ClusterName})
	if err != nil {
		return fmt.Errorf("%s: %w", o.target, err)
	}
	return nil
}

// sets returns the MachineSets of the deployment.
func (o *rolloutTarget) sets(ctx context.Context) ([]*clusterv1.MachineSet, error) {
	list := &clusterv1.MachineSetList{}
	if err := o.client.List(ctx, list, client.InNamespace(o.deployment.Namespace)); err != nil {
		return nil, fmt.Errorf("list the MachineSets of %s: %w", o.target, err)
	}
	return setsOf(o.deployment, list.Items), nil
}

// warnPaused tells that nothing will happen for now.
func (o *rolloutTarget) warnPaused() {
	switch {
	case isPaused(o.cluster, o.cluster):
		fmt.Fprintf(o.ErrOut, "Warning: cluster %q is paused: nothing happens until it is resumed\n", o.cluster.Name)
	case isPaused(o.cluster, o.deployment):
		fmt.Fprintf(o.ErrOut, "Warning: %s has the annotation %s: nothing happens until it is taken away\n", o.target, clusterv1.PausedAnnotation)
	}
}

// indent puts text below a line.
func indent(lines []string) string {
	return "  " + strings.Join(lines, "\n  ")
}
