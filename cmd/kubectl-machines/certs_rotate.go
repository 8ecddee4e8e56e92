package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubectl/pkg/util/templates"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/cli"
	"github.com/millwright-dev/millwright/internal/graph"
)

// certsRotateOptions replace a control plane's machines, and their certificates with them.
type certsRotateOptions struct {
	*cli.Options
	changeFlags
	wait bool

	key     client.ObjectKey
	client  client.WithWatch
	cluster *clusterv1.Cluster
	plane   *controlplanev1.KubeadmControlPlane
}

func newCertsRotateCommand(o *cli.Options) *cobra.Command {
	rotate := &certsRotateOptions{Options: o}
	cmd := &cobra.Command{
		Use:   "rotate CLUSTER",
		Short: "Give a control plane new certificates, by replacing its machines",
		Long: templates.LongDesc(`
			Give the control plane of a cluster new certificates: its machines are replaced by new ones, one by one.
			Authorities and the kubeconfig stay as they are.

			This sets spec.rollout.after of the KubeadmControlPlane to now; for a Cluster with a topology it is set
			there. The command waits until all machines are new; when it is interrupted the rollout goes on, and the
			same command waits for it again.`),
		Example: templates.Examples(`
			# See what would be replaced
			{{kubectl}} certs rotate prod --dry-run

			# Begin, and do not wait
			{{kubectl}} certs rotate prod --yes --wait=false`),
		Args:              cli.OneArg("CLUSTER"),
		ValidArgsFunction: o.CompleteFirst(clusterNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := rotate.validate(); err != nil {
				return err
			}
			if err := rotate.complete(cmd.Context(), args[0]); err != nil {
				return err
			}
			return rotate.run(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&rotate.wait, "wait", true, "Wait until all machines are new.")
	cmd.Flags().DurationVar(&rotate.timeout, "timeout", 0, "How long to wait; 0 is for ever.")
	rotate.addDryRun(cmd)
	rotate.addYes(cmd)
	return cmd
}

func (o *certsRotateOptions) complete(ctx context.Context, arg string) error {
	name, err := clusterName(arg)
	if err != nil {
		return err
	}
	namespace, err := o.Namespace()
	if err != nil {
		return err
	}
	if o.client, err = o.ClusterAPI(ctx); err != nil {
		return err
	}
	o.key = client.ObjectKey{Namespace: namespace, Name: name}
	if o.cluster, err = getCluster(ctx, o.client, o.key); err != nil {
		return err
	}
	ref := o.cluster.Spec.ControlPlaneRef
	switch {
	case !ref.IsDefined():
		return fmt.Errorf("cluster %q names no control plane (spec.controlPlaneRef): it is looked after elsewhere, and so are its certificates", name)
	case ref.GroupKind() != kindControlPlane.GroupKind():
		return fmt.Errorf("cluster %q: the control plane is a %s, not a KubeadmControlPlane: its provider tells how to renew certificates", name, ref.Kind)
	}
	o.plane = &controlplanev1.KubeadmControlPlane{}
	if err := o.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, o.plane); err != nil {
		return fmt.Errorf("cluster %q: read KubeadmControlPlane %s: %w", name, ref.Name, err)
	}
	return nil
}

func (o *certsRotateOptions) run(ctx context.Context) error {
	list := &clusterv1.MachineList{}
	if err := o.client.List(ctx, list, client.InNamespace(o.key.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: o.key.Name},
		client.HasLabels{clusterv1.MachineControlPlaneLabel}); err != nil {
		return fmt.Errorf("list the machines of cluster %q: %w", o.key.Name, err)
	}
	plan, err := planRotation(o.cluster, o.plane, machinesOf(o.plane, list.Items), time.Now())
	if err != nil {
		return err
	}
	o.warnPaused()
	resource := target{kindControlPlane, o.plane.Name}.resource()
	if plan.patch == nil {
		fmt.Fprintf(o.Out, "%s %s%s\n", resource, plan.done, o.mode())
	} else if err := o.begin(ctx, plan, resource); err != nil {
		return err
	}
	if !o.wait || o.dryRun != dryRunNone {
		return nil
	}
	return o.follow(ctx, plan.after, resource)
}

// begin asks, writes and says what was written.
func (o *certsRotateOptions) begin(ctx context.Context, plan rotation, resource string) error {
	if o.dryRun == dryRunNone {
		if err := o.Confirm(o.yes, plan.dies...); err != nil {
			return err
		}
	}
	if o.dryRun != dryRunClient {
		var opts []client.PatchOption
		if o.dryRun == dryRunServer {
			opts = append(opts, client.DryRunAll)
		}
		written := plan.object.DeepCopyObject().(client.Object)
		err := o.client.Patch(ctx, written, plan.patch, opts...)
		if apierrors.IsInvalid(err) && plan.object == client.Object(o.cluster) {
			return fmt.Errorf("cluster %q may have been changed by somebody else meanwhile: look at it, and run the command again: %w", o.key.Name, err)
		}
		if err != nil {
			return fmt.Errorf("cluster %q: ask for new control-plane machines: %w", o.key.Name, err)
		}
	}
	fmt.Fprintf(o.Out, "%s %s%s\n", resource, plan.done, o.mode())
	if o.dryRun != dryRunNone {
		fmt.Fprintln(o.ErrOut, indent(plan.dies))
	}
	return nil
}

// warnPaused tells that nothing will happen for now.
func (o *certsRotateOptions) warnPaused() {
	switch {
	case isPaused(o.cluster, o.cluster):
		fmt.Fprintf(o.ErrOut, "Warning: cluster %q is paused: nothing happens until it is resumed\n", o.key.Name)
	case isPaused(o.cluster, o.plane):
		fmt.Fprintf(o.ErrOut, "Warning: KubeadmControlPlane %s has the annotation %s: nothing happens until it is taken away\n", o.plane.Name, clusterv1.PausedAnnotation)
	}
}

// follow shows how the machines are replaced, until all are.
func (o *certsRotateOptions) follow(ctx context.Context, after time.Time, resource string) error {
	follower := graph.NewFollower(o.client)
	progress, palette := o.NewProgress(), paletteFor(o.ErrOut)
	err := cli.Wait(ctx, o.timeout, follower.Changed(), progress, tellLoss(follower, func() (cli.State, error) {
		g, err := followCluster(ctx, o.client, follower, o.key)
		if err != nil {
			return cli.State{}, err
		}
		owner := g.Find(kindControlPlane.GroupKind(), o.plane.Name)
		if owner == nil || owner.GetUID() != o.plane.UID {
			return cli.State{}, fmt.Errorf("KubeadmControlPlane %s was deleted meanwhile", o.plane.Name)
		}
		var machines []*clusterv1.Machine
		for _, m := range g.Machines(owner) {
			machines = append(machines, m.Object.(*clusterv1.Machine))
		}
		plane, err := controlPlaneOf(owner.Object)
		if err != nil {
			return cli.State{}, err
		}
		state := stateOfRotation(plane, machines, after)
		view := cli.View{Changes: []string{state.line}}
		if progress.Live() {
			view.Screen = append(drawTree(g.Owned(owner, graph.TreeOptions{}), time.Now(), cli.Width(o.ErrOut), palette), state.line)
		}
		return cli.State{Done: state.done, Missing: state.line, View: view}, nil
	}))
	if errors.Is(err, context.Canceled) {
		return &cli.Error{Code: cli.ExitInterrupted, Err: fmt.Errorf("interrupted: the machines go on being replaced; the same command waits for them again")}
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "%s has new certificates\n", resource)
	return nil
}

// controlPlaneOf reads a control plane of the graph, which knows it by contract only.
func controlPlaneOf(obj client.Object) (*controlplanev1.KubeadmControlPlane, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("read KubeadmControlPlane %s: %w", obj.GetName(), err)
	}
	plane := &controlplanev1.KubeadmControlPlane{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, plane); err != nil {
		return nil, fmt.Errorf("read KubeadmControlPlane %s: %w", obj.GetName(), err)
	}
	return plane, nil
}
