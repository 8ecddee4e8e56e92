package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubectl/pkg/util/templates"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/cli"
	"github.com/millwright-dev/millwright/internal/graph"
)

// rolloutStatusOptions watch a rollout.
type rolloutStatusOptions struct {
	rolloutTarget
	watch   bool
	timeout time.Duration
}

func newRolloutStatusCommand(o *cli.Options) *cobra.Command {
	status := &rolloutStatusOptions{rolloutTarget: rolloutTarget{Options: o}}
	cmd := &cobra.Command{
		Use:   "status NAME",
		Short: "Watch a rollout until it is done",
		Long: templates.LongDesc(`
			Watch the rollout of a MachineDeployment: one line a change, on a terminal a live view.

			The command ends when all machines are of the last revision and available. It fails when the rollout
			is paused, or the MachineDeployment is deleted meanwhile; 124 is its exit code when --timeout has passed.`),
		Example: templates.Examples(`
			# Watch a rollout for an hour at most
			{{kubectl}} rollout status prod-md-0 --timeout 1h

			# See where it stands, without waiting
			{{kubectl}} rollout status prod-md-0 --watch=false`),
		Args:              cli.OneArg("NAME"),
		ValidArgsFunction: o.CompleteFirst(deploymentNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			if status.timeout < 0 {
				return cli.UsageErrorf("--timeout must not be negative")
			}
			if err := status.validateTarget(args[0]); err != nil {
				return err
			}
			if err := status.complete(cmd.Context()); err != nil {
				return err
			}
			return status.run(cmd.Context())
		},
	}
	cmd.Flags().BoolVarP(&status.watch, "watch", "w", true, "Watch until the rollout is done.")
	cmd.Flags().DurationVar(&status.timeout, "timeout", 0, "How long to watch; 0 is for ever.")
	return cmd
}

func (o *rolloutStatusOptions) run(ctx context.Context) error {
	o.warnPaused()
	if o.watch {
		return watchRollout(ctx, &o.rolloutTarget, o.timeout, time.Time{})
	}
	sets, err := o.sets(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "%s: %s\n", o.target, stateOfRollout(o.deployment, sets, soon()).line)
	return nil
}

// soon is a moment from now, so that a restart which begins with the next second is not taken for one that is over.
func soon() time.Time { return time.Now().Add(2 * time.Second) }

// watchRollout shows how a rollout advances until it is done; one that begins at after, where that is not zero.
func watchRollout(ctx context.Context, o *rolloutTarget, timeout time.Duration, after time.Time) error {
	follower := graph.NewFollower(o.client)
	palette := paletteFor(o.ErrOut)
	uid := o.deployment.UID
	progress := cli.NewProgress(o.Out)
	err := cli.Wait(ctx, timeout, follower.Changed(), progress, func() (cli.State, error) {
		g, err := followCluster(ctx, o.client, follower, client.ObjectKeyFromObject(o.cluster))
		if err != nil {
			return cli.State{}, err
		}
		owner := g.Find(kindDeployment.GroupKind(), o.target.name)
		if owner == nil || owner.GetUID() != uid {
			return cli.State{}, fmt.Errorf("%s was deleted meanwhile", o.target)
		}
		objects, err := follower.Objects()
		if err != nil {
			return cli.State{}, err
		}
		state := stateOfRollout(wanted(owner.Object.(*clusterv1.MachineDeployment), after), setsAmong(objects, uid), later(soon(), after))
		line := fmt.Sprintf("%s: %s", o.target, state.line)
		if state.stuck != "" {
			fmt.Fprintln(o.Out, line)
			return cli.State{}, fmt.Errorf("%s: %s", o.target, state.stuck)
		}
		view := cli.View{Changes: []string{line}}
		if progress.Live() {
			view.Screen = append(drawTree(g.Owned(owner, graph.TreeOptions{}), time.Now(), cli.Width(o.Out), palette), line)
		}
		return cli.State{Done: state.done, Missing: line, View: view}, nil
	})
	if errors.Is(err, context.Canceled) {
		return &cli.Error{Code: cli.ExitInterrupted, Err: fmt.Errorf("interrupted: %s goes on by itself; rollout status watches it again", o.target)}
	}
	return err
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// wanted returns a deployment that asks for a rollout after a time even where a topology has not told it yet.
func wanted(deployment *clusterv1.MachineDeployment, after time.Time) *clusterv1.MachineDeployment {
	if !deployment.Spec.Rollout.After.Time.Before(after) {
		return deployment
	}
	deployment = deployment.DeepCopy()
	deployment.Spec.Rollout.After = metav1.NewTime(after)
	return deployment
}

// setsAmong returns the MachineSets among objects that a deployment controls.
func setsAmong(objects []client.Object, deployment types.UID) []*clusterv1.MachineSet {
	var sets []*clusterv1.MachineSet
	for _, obj := range objects {
		if set, ok := obj.(*clusterv1.MachineSet); ok && metav1.GetControllerOf(set) != nil && metav1.GetControllerOf(set).UID == deployment {
			sets = append(sets, set)
		}
	}
	return sets
}
