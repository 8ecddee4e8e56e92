package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubectl/pkg/util/templates"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/cli"
)

// Values of --dry-run, as in kubectl.
const (
	dryRunNone   = "none"
	dryRunClient = "client"
	dryRunServer = "server"
)

// scaleOptions set the replicas of what owns machines.
type scaleOptions struct {
	*cli.Options

	replicas int32
	current  int32
	wait     bool
	timeout  time.Duration
	dryRun   string

	target    target
	namespace string
	client    client.WithWatch
}

func newScaleCommand(o *cli.Options) *cobra.Command {
	scale := &scaleOptions{Options: o}
	cmd := &cobra.Command{
		Use:   "scale NAME --replicas N",
		Short: "Set the number of machines of a MachineDeployment or a control plane",
		Long: templates.LongDesc(`
			Set the number of machines of a MachineDeployment, or of kubeadmcontrolplane/NAME or machineset/NAME.

			The number is written to the object; its controller does the rest, also when this command ends. With
			--wait the command shows how far it has come, until each machine runs with a ready node and those
			that are too many are gone. Objects of a Cluster with a topology are scaled in the Cluster.`),
		Example: templates.Examples(`
			# Scale a MachineDeployment to 6 machines, and wait until they are ready
			{{kubectl}} scale prod-md-0 --replicas 6 --wait

			# Scale a control plane to 3 machines
			{{kubectl}} scale kubeadmcontrolplane/prod --replicas 3

			# Scale only if nobody else has done so in the meantime
			{{kubectl}} scale prod-md-0 --current-replicas 3 --replicas 6`),
		Args:              cli.OneArg("NAME"),
		ValidArgsFunction: o.CompleteFirst(deploymentNames, controlPlaneNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := scale.validate(args); err != nil {
				return err
			}
			if err := scale.complete(cmd.Context()); err != nil {
				return err
			}
			return scale.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.Int32Var(&scale.replicas, "replicas", 0, "The number of machines to have. Required.")
	flags.Int32Var(&scale.current, "current-replicas", -1, "Scale only if this is the number now; -1 does not ask.")
	flags.BoolVar(&scale.wait, "wait", false, "Wait until the machines are there, with ready nodes, and the surplus is gone.")
	flags.DurationVar(&scale.timeout, "timeout", 15*time.Minute, "With --wait, how long to wait; 0 is for ever.")
	flags.StringVar(&scale.dryRun, "dry-run", dryRunNone, `Must be "none", "server", or "client". With client only say what would be done; with server let the server check it.`)
	flags.Lookup("dry-run").NoOptDefVal = dryRunClient
	cli.RequireFlag(cmd, "replicas", "N")
	_ = cmd.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions([]string{dryRunNone, dryRunClient, dryRunServer}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (o *scaleOptions) validate(args []string) error {
	var err error
	if o.target, err = parseTarget(args[0]); err != nil {
		return err
	}
	switch {
	case o.replicas < 0:
		return cli.UsageErrorf("--replicas must not be negative, not %d", o.replicas)
	case o.current < -1:
		return cli.UsageErrorf("--current-replicas must be -1 or more, not %d", o.current)
	case o.timeout < 0:
		return cli.UsageErrorf("--timeout must not be negative")
	case o.dryRun != dryRunNone && o.dryRun != dryRunClient && o.dryRun != dryRunServer:
		return cli.UsageErrorf("--dry-run must be none, server or client, not %q", o.dryRun)
	case o.wait && o.dryRun != dryRunNone:
		return cli.UsageErrorf("--wait does not go with --dry-run: nothing would change")
	}
	return nil
}

func (o *scaleOptions) complete(ctx context.Context) error {
	var err error
	if o.namespace, err = o.Namespace(); err != nil {
		return err
	}
	o.client, err = o.ClusterAPI(ctx)
	return err
}

func (o *scaleOptions) run(ctx context.Context) error {
	obj, err := readTarget(ctx, o.Options, o.client, o.target, o.namespace)
	if err != nil {
		return err
	}
	name := clusterOf(obj)
	if name == "" {
		return fmt.Errorf("%s does not belong to a cluster yet: no Cluster refers to it in spec.controlPlaneRef, or its controller has not seen it", o.target)
	}
	cluster, err := getCluster(ctx, o.client, client.ObjectKey{Namespace: o.namespace, Name: name})
	if err != nil {
		return fmt.Errorf("%s: %w", o.target, err)
	}
	plan, err := planScale(o.target, obj, cluster, o.replicas, o.current)
	if err != nil {
		return err
	}
	for _, warning := range plan.warnings {
		fmt.Fprintf(o.ErrOut, "Warning: %s\n", warning)
	}
	if err := o.write(ctx, obj, plan); err != nil {
		return err
	}
	o.report(plan)
	if o.wait {
		return o.waitFor(ctx, client.ObjectKeyFromObject(cluster))
	}
	return nil
}

// write sets the replicas through the scale subresource, for which a user can be
// given permission without that of changing the rest of the spec.
func (o *scaleOptions) write(ctx context.Context, obj client.Object, plan scalePlan) error {
	if o.dryRun == dryRunClient {
		return nil
	}
	var opts []client.SubResourcePatchOption
	if o.dryRun == dryRunServer {
		opts = append(opts, client.DryRunAll)
	}
	opts = append(opts, &client.SubResourcePatchOptions{SubResourceBody: &autoscalingv1.Scale{}})
	err := o.client.SubResource("scale").Patch(ctx, obj, client.RawPatch(types.MergePatchType, plan.patch), opts...)
	if apierrors.IsConflict(err) {
		return fmt.Errorf("%s has changed since it was read: look at its replicas and try again", o.target)
	}
	if err != nil {
		return fmt.Errorf("scale %s: %w", o.target, err)
	}
	return nil
}

func (o *scaleOptions) report(plan scalePlan) {
	mode := ""
	switch o.dryRun {
	case dryRunClient:
		mode = " (dry run)"
	case dryRunServer:
		mode = " (server dry run)"
	}
	if plan.from == o.replicas {
		fmt.Fprintf(o.Out, "%s has %d replicas already%s\n", o.target.resource(), plan.from, mode)
		return
	}
	fmt.Fprintf(o.Out, "%s scaled from %d to %d%s\n", o.target.resource(), plan.from, o.replicas, mode)
}
