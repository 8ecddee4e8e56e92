package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/kubectl/pkg/util/templates"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/cli"
)

// rolloutChangeOptions are those of the commands that steer a rollout.
type rolloutChangeOptions struct {
	rolloutTarget
	changeFlags
	wait bool

	// plan decides what to write.
	plan func(context.Context) (rolloutChange, error)
}

func newRolloutUndoCommand(o *cli.Options) *cobra.Command {
	undo, revision := newRolloutChange(o), int64(0)
	cmd := undo.command(&cobra.Command{
		Use:   "undo NAME",
		Short: "Go back to an earlier revision",
		Long: templates.LongDesc(`
			Give a MachineDeployment the template of an earlier revision, which makes a new rollout.

			Without --to-revision it is the last one whose machines were different. What its template refers to by
			name, such as an infrastructure template, must still exist.`),
		Example: templates.Examples(`
			# Go back to what was before, and wait until it is there
			{{kubectl}} rollout undo prod-md-0 --wait

			# See what going back to a revision would change
			{{kubectl}} rollout undo prod-md-0 --to-revision 3 --dry-run`),
	})
	cmd.Flags().Int64Var(&revision, "to-revision", 0, "The revision to go back to, as rollout history lists it; 0 is the one before.")
	undo.addWait(cmd)
	undo.plan = func(ctx context.Context) (rolloutChange, error) {
		if revision < 0 {
			return rolloutChange{}, cli.UsageErrorf("--to-revision must not be negative, not %d", revision)
		}
		sets, err := undo.sets(ctx)
		if err != nil {
			return rolloutChange{}, err
		}
		return planUndo(undo.target, undo.deployment, undo.cluster, sets, revision)
	}
	return cmd
}

func newRolloutRestartCommand(o *cli.Options) *cobra.Command {
	restart := newRolloutChange(o)
	cmd := restart.command(&cobra.Command{
		Use:   "restart NAME",
		Short: "Replace all machines by new ones",
		Long: templates.LongDesc(`
			Replace all machines of a MachineDeployment by new ones of the same template, within the bounds of its
			rollout strategy.

			This sets spec.rollout.after to now; for a Cluster with a topology it is set there.`),
		Example: templates.Examples(`
			# Replace all machines, and wait until it is done
			{{kubectl}} rollout restart prod-md-0 --wait`),
	})
	restart.addWait(cmd)
	restart.plan = func(ctx context.Context) (rolloutChange, error) {
		sets, err := restart.sets(ctx)
		if err != nil {
			return rolloutChange{}, err
		}
		return planRestart(restart.target, restart.deployment, restart.cluster, sets, time.Now())
	}
	return cmd
}

func newRolloutPauseCommand(o *cli.Options) *cobra.Command {
	pause := newRolloutChange(o)
	pause.plan = func(context.Context) (rolloutChange, error) {
		return planPause(pause.target, pause.deployment, pause.cluster, true)
	}
	return pause.command(&cobra.Command{
		Use:   "pause NAME",
		Short: "Stop a rollout where it is",
		Long: templates.LongDesc(`
			Stop the rollout of a MachineDeployment where it is, and begin no other until it is resumed.

			Machines that come or go already do so to the end. Scaling goes on.`),
		Example: templates.Examples(`
			# Change several things, with one rollout
			{{kubectl}} rollout pause prod-md-0
			kubectl edit machinedeployment prod-md-0
			{{kubectl}} rollout resume prod-md-0`),
	})
}

func newRolloutResumeCommand(o *cli.Options) *cobra.Command {
	resume := newRolloutChange(o)
	resume.plan = func(context.Context) (rolloutChange, error) {
		return planPause(resume.target, resume.deployment, resume.cluster, false)
	}
	cmd := resume.command(&cobra.Command{
		Use:   "resume NAME",
		Short: "Let a paused rollout go on",
		Long: templates.LongDesc(`
			Let the rollouts of a MachineDeployment go on that was paused.`),
		Example: templates.Examples(`
			# Go on, and wait until the rollout is done
			{{kubectl}} rollout resume prod-md-0 --wait`),
	})
	resume.addWait(cmd)
	return cmd
}

func newRolloutChange(o *cli.Options) *rolloutChangeOptions {
	return &rolloutChangeOptions{rolloutTarget: rolloutTarget{Options: o}}
}

// command adds to cmd what the commands share.
func (o *rolloutChangeOptions) command(cmd *cobra.Command) *cobra.Command {
	cmd.Args = cli.OneArg("NAME")
	cmd.ValidArgsFunction = o.CompleteFirst(deploymentNames)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := o.validateArgs(args); err != nil {
			return err
		}
		if err := o.complete(cmd.Context()); err != nil {
			return err
		}
		return o.run(cmd.Context())
	}
	o.addDryRun(cmd)
	return cmd
}

func (o *rolloutChangeOptions) addWait(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.wait, "wait", false, "Wait until the rollout is done.")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 0, "With --wait, how long to wait; 0 is for ever.")
}

func (o *rolloutChangeOptions) validateArgs(args []string) error {
	if o.wait && o.dryRun != dryRunNone {
		return cli.UsageErrorf("--wait does not go with --dry-run: nothing would change")
	}
	if err := o.changeFlags.validate(); err != nil {
		return err
	}
	return o.validateTarget(args[0])
}

func (o *rolloutChangeOptions) run(ctx context.Context) error {
	change, err := o.plan(ctx)
	var nothing errNothing
	if errors.As(err, &nothing) {
		fmt.Fprintf(o.Out, "%s %s%s\n", o.target.resource(), nothing, o.mode())
		return nil
	}
	if err != nil {
		return err
	}
	o.warnPaused()
	if err := o.write(ctx, change); err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "%s %s%s\n", o.target.resource(), change.done, o.mode())
	if len(change.details) > 0 {
		fmt.Fprintln(o.ErrOut, indent(change.details))
	}
	if o.wait && change.waits {
		return watchRollout(ctx, &o.rolloutTarget, o.timeout, change.after)
	}
	return nil
}

func (o *rolloutChangeOptions) write(ctx context.Context, change rolloutChange) error {
	var opts []client.PatchOption
	switch o.dryRun {
	case dryRunClient:
		return nil
	case dryRunServer:
		opts = append(opts, client.DryRunAll)
	}
	written := change.object.DeepCopyObject().(client.Object)
	err := o.client.Patch(ctx, written, change.patch, opts...)
	if apierrors.IsInvalid(err) && written.GetGeneration() != o.generation(ctx, change.object) {
		return fmt.Errorf("%s was changed by somebody else meanwhile: look at it, and run the command again", o.target)
	}
	if err != nil {
		return fmt.Errorf("change %s: %w", o.target, err)
	}
	return nil
}

// generation reads the generation that an object has now, 0 where that is not to be had.
func (o *rolloutChangeOptions) generation(ctx context.Context, obj client.Object) int64 {
	now := obj.DeepCopyObject().(client.Object)
	if err := o.client.Get(ctx, client.ObjectKeyFromObject(obj), now); err != nil {
		return 0
	}
	return now.GetGeneration()
}
