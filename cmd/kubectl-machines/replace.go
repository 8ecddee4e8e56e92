package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubectl/pkg/util/templates"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/cli"
	"github.com/millwright-dev/millwright/internal/graph"
)

// replaceOptions replace one machine, the new one first.
type replaceOptions struct {
	*cli.Options
	changeFlags

	name      string
	namespace string
	client    client.WithWatch

	target  target
	cluster client.ObjectKey
	// started is set once the intent was seen or written.
	started bool
	// outdated is the version of the owner that this command has patched last: until the watch brings another, nothing
	// can be decided.
	outdated string
}

func newReplaceCommand(o *cli.Options) *cobra.Command {
	replace := &replaceOptions{Options: o}
	cmd := &cobra.Command{
		Use:   "replace MACHINE",
		Short: "Replace a machine by a new one, which is ready before the old one goes",
		Long: templates.LongDesc(`
			Replace a worker by a new machine of the same kind.

			The replicas of its MachineDeployment or MachineSet are raised by one. When the new machine is ready and
			available, the old one is drained and removed, and the replicas are as before. What is under way is
			noted on the owner: after an interruption the same command goes on where it stopped.`),
		Example: templates.Examples(`
			# Replace a machine
			{{kubectl}} replace prod-md-0-x7k2p

			# Replace a machine that is broken, without the new one first
			{{kubectl}} delete prod-md-0-x7k2p --replace`),
		Args:              cli.OneArg("MACHINE"),
		ValidArgsFunction: o.CompleteFirst(machineNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := replace.validateArgs(args); err != nil {
				return err
			}
			if err := replace.complete(cmd.Context()); err != nil {
				return err
			}
			return replace.run(cmd.Context())
		},
	}
	cmd.Flags().DurationVar(&replace.timeout, "timeout", 30*time.Minute, "How long to wait; 0 is for ever.")
	replace.addDryRun(cmd)
	replace.addYes(cmd)
	replace.addOutput(cmd)
	return cmd
}

func (o *replaceOptions) validateArgs(args []string) error {
	var err error
	if o.name, err = machineArgument(args[0]); err != nil {
		return err
	}
	return o.validate()
}

func (o *replaceOptions) complete(ctx context.Context) error {
	var err error
	if o.namespace, err = o.Namespace(); err != nil {
		return err
	}
	o.client, err = o.ClusterAPI(ctx)
	return err
}

func (o *replaceOptions) run(ctx context.Context) error {
	machine, err := o.find(ctx)
	if err != nil {
		return err
	}
	follower := graph.NewFollower(o.client)
	state, err := o.state(ctx, follower)
	if err != nil {
		return err
	}
	// An intent that a machine of this name before has left behind is cleared away first, and does not count.
	intent, found := readIntent(state.owner)
	o.started = found && intent.Machine == o.name && (machine == nil || machine.UID == intent.UID)
	if o.dryRun != dryRunNone {
		return o.rehearse(ctx, state)
	}
	if machine != nil {
		what := fmt.Sprintf("machine %s of cluster %s (node %s) is deleted, with its host and what is stored there, when a new one is available",
			machine.Name, o.cluster.Name, cmp.Or(machine.Status.NodeRef.Name, "<none>"))
		if err := o.Confirm(o.yes, what); err != nil {
			return err
		}
	}
	return o.follow(ctx, follower)
}

// find reads the machine and its owner. Where the machine is gone, it may be that only the last step of its
// replacement is left, which the owner tells: then the machine is nil.
func (o *replaceOptions) find(ctx context.Context) (*clusterv1.Machine, error) {
	machine, err := getMachine(ctx, o.client, client.ObjectKey{Namespace: o.namespace, Name: o.name})
	if err != nil {
		if o.findIntent(ctx) {
			return nil, nil
		}
		return nil, err
	}
	owned, err := readOwner(ctx, o.client, machine)
	if err != nil {
		return nil, err
	}
	switch {
	case owned.controlPlane():
		return nil, fmt.Errorf("machine %q is of the control plane, which cannot have one more for a while: use %s delete %s --replace, "+
			"or change the template to roll out all of them", o.name, o.Typed(), o.name)
	case owned.owner == nil:
		return nil, fmt.Errorf("machine %q belongs to %s, which this command cannot scale", o.name, cmp.Or(owned.other, "nobody"))
	}
	o.target, o.cluster = owned.target, client.ObjectKey{Namespace: o.namespace, Name: machine.Spec.ClusterName}
	cluster, err := getCluster(ctx, o.client, o.cluster)
	if err != nil {
		return nil, err
	}
	if err := refuseScale(o.target, owned.owner, cluster, desired(owned.owner)+1); err != nil {
		return nil, fmt.Errorf("%w; or use %s delete %s --replace, which leaves replicas alone", err, o.Typed(), o.name)
	}
	for _, warning := range scaleWarnings(o.target, owned.owner, cluster, desired(owned.owner)+1) {
		fmt.Fprintf(o.ErrOut, "Warning: %s\n", warning)
	}
	return machine, nil
}

// findIntent looks for an owner on which the replacement of the machine is noted.
func (o *replaceOptions) findIntent(ctx context.Context) bool {
	deployments, sets := &clusterv1.MachineDeploymentList{}, &clusterv1.MachineSetList{}
	if o.client.List(ctx, deployments, client.InNamespace(o.namespace)) != nil || o.client.List(ctx, sets, client.InNamespace(o.namespace)) != nil {
		return false
	}
	var owners []client.Object
	for i := range deployments.Items {
		owners = append(owners, &deployments.Items[i])
	}
	for i := range sets.Items {
		// The set of a deployment may bear a copy of its annotations.
		if metav1.GetControllerOf(&sets.Items[i]) == nil {
			owners = append(owners, &sets.Items[i])
		}
	}
	for _, owner := range owners {
		if intent, found := readIntent(owner); found && intent.Machine == o.name {
			kind := kindDeployment
			if _, isSet := owner.(*clusterv1.MachineSet); isSet {
				kind = kindSet
			}
			o.target, o.cluster = target{kind, owner.GetName()}, client.ObjectKey{Namespace: o.namespace, Name: clusterOf(owner)}
			return true
		}
	}
	return false
}

// state is the replacement as the follower sees it.
func (o *replaceOptions) state(ctx context.Context, follower *graph.Follower) (replaceState, error) {
	g, err := followCluster(ctx, o.client, follower, o.cluster)
	if err != nil {
		return replaceState{}, err
	}
	owner := g.Find(o.target.kind.GroupKind(), o.target.name)
	if owner == nil {
		return replaceState{}, fmt.Errorf("%s was deleted meanwhile", o.target)
	}
	s := replaceState{name: o.name, owner: owner.Object}
	for _, m := range g.Machines(owner) {
		machine := m.Object.(*clusterv1.Machine)
		s.machines = append(s.machines, machine)
		if machine.Name == o.name {
			s.machine = machine
		}
	}
	for _, set := range g.OfKind(kindSet.Kind) {
		s.sets = append(s.sets, *set.Object.(*clusterv1.MachineSet))
	}
	return s, nil
}

// follow takes one step after the other, until the machine is replaced.
func (o *replaceOptions) follow(ctx context.Context, follower *graph.Follower) error {
	err := cli.Wait(ctx, o.timeout, follower.Changed(), o.NewProgress(), tellLoss(follower, func() (cli.State, error) {
		s, err := o.state(ctx, follower)
		if err != nil {
			return cli.State{}, err
		}
		if s.owner.GetResourceVersion() == o.outdated {
			return cli.State{Missing: fmt.Sprintf("%s has been changed, and no answer has come yet", o.target)}, nil
		}
		step, err := planReplace(s, o.started)
		if err != nil {
			if errors.Is(err, errIntentOverridden) {
				err = errors.Join(err, o.take(ctx, s, step))
			}
			return cli.State{}, err
		}
		switch err := o.take(ctx, s, step); {
		case apierrors.IsConflict(err):
			// What was decided on is out of date; the watch is about to tell.
			return cli.State{Missing: step.says}, nil
		case err != nil:
			return cli.State{}, err
		}
		return cli.State{
			Done:    step.kind == stepDone,
			Missing: step.says,
			View:    cli.View{Screen: []string{step.says}, Changes: []string{step.says}},
		}, nil
	}))
	switch {
	case errors.Is(err, context.Canceled):
		return &cli.Error{Code: cli.ExitInterrupted, Err: fmt.Errorf("interrupted: run the command again to go on with machine %q", o.name)}
	case err != nil:
		return err
	case o.output == "name":
		fmt.Fprintln(o.Out, machineResource(o.name))
	default:
		fmt.Fprintf(o.Out, "%s replaced\n", machineResource(o.name))
	}
	return nil
}

// take writes what a step asks for. Patches of the owner are refused with a conflict when it has changed since it was
// seen.
func (o *replaceOptions) take(ctx context.Context, s replaceState, step replaceStep, opts ...client.PatchOption) error {
	switch step.kind {
	case stepOwner:
		patch, err := step.patch(s.owner)
		if err != nil {
			return err
		}
		owner := o.target.newObject()
		owner.SetNamespace(o.namespace)
		owner.SetName(o.target.name)
		if err := o.client.Patch(ctx, owner, client.RawPatch(types.MergePatchType, patch), opts...); err != nil {
			return fmt.Errorf("set the replicas of %s to %d: %w", o.target, step.replicas, err)
		}
		o.outdated = s.owner.GetResourceVersion()
		o.started = o.started || step.intent != nil && step.intent.Machine == o.name
	case stepMark:
		return markMachine(ctx, o.client, s.machine, false)
	case stepDelete:
		return deleteMachine(ctx, o.client, s.machine, false)
	}
	return nil
}

// patch is that of the owner.
func (step replaceStep) patch(owner client.Object) ([]byte, error) {
	if step.intent == nil {
		return ownerPatch(owner, step.replicas, replaceAnnotation, nil)
	}
	value, err := json.Marshal(step.intent)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", replaceAnnotation, err)
	}
	text := string(value)
	return ownerPatch(owner, step.replicas, replaceAnnotation, &text)
}

// rehearse says what the next step is, and lets the server check it.
func (o *replaceOptions) rehearse(ctx context.Context, s replaceState) error {
	step, err := planReplace(s, o.started)
	if err != nil {
		return err
	}
	if o.dryRun == dryRunServer && step.kind == stepOwner {
		if err := o.take(ctx, s, step, client.DryRunAll); err != nil {
			return err
		}
	}
	fmt.Fprintf(o.Out, "%s replaced%s; next: %s\n", machineResource(o.name), o.mode(), step.says)
	return nil
}
