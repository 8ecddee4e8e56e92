package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubectl/pkg/util/templates"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lifecyclev1 "github.com/millwright-dev/millwright/api/lifecycle/v1alpha1"
	"github.com/millwright-dev/millwright/internal/cli"
	"github.com/millwright-dev/millwright/internal/lifecycle"
	"github.com/millwright-dev/millwright/internal/lifecycle/upgrade"
)

// upgradeOptions begin an upgrade, or show what it would be.
type upgradeOptions struct {
	upgradeTarget
	fleetFlags

	to           string
	via          []string
	imagePattern string
	pauseBefore  []string
	workersOnly  []string
	controlPlane bool
	everyMinor   bool
	rollBack     bool
	force        []string
	together     int32

	plan, check, wait bool
	timeout           time.Duration
	dryRun            string
	output            string
}

func newUpgradeCommand(o *cli.Options) *cobra.Command {
	up := &upgradeOptions{upgradeTarget: upgradeTarget{Options: o}}
	cmd := &cobra.Command{
		Use:   "upgrade (CLUSTER | -l SELECTOR) --to VERSION",
		Short: "Bring a whole cluster, or a fleet, to a Kubernetes version",
		Long: templates.LongDesc(`
			Bring a whole cluster to a Kubernetes version: its control plane, a minor at a time, its
			add-ons in their places, and its workers.

			The command writes a ClusterUpgrade, which the operator carries out, also when this command ends. The same
			command again, or "upgrade status", watches it on. Machine templates are copied with the image of the new
			version, never edited: by default the version in the name of the present image is replaced.

			With a selector the clusters that match it are upgraded by name, some at once, until too many have failed. Then
			the command waits until all is over; the same command again goes on where an earlier one ended.

			The operator checks beforehand what could go wrong, and begins nothing while anything stands in the way.`),
		Example: templates.Examples(`
			# See the steps, and what stands in the way
			{{kubectl}} upgrade prod --to v1.37.2 --plan

			# Upgrade, and wait until it is done
			{{kubectl}} upgrade prod --to v1.37.2 --wait

			# Upgrade the control plane, and the workers when somebody approves it
			{{kubectl}} upgrade prod --to v1.37.2 --pause-before workers

			# Upgrade all clusters of a stage, three at once, and stop when two have failed
			{{kubectl}} upgrade -l stage=test --to v1.37.2 --max-concurrent 3 --max-failures 2

			# Keep the upgrade in Git
			{{kubectl}} upgrade prod --to v1.37.2 --dry-run=client -o yaml`),
		Args: func(cmd *cobra.Command, args []string) error {
			if up.selector != "" && len(args) > 0 {
				return fmt.Errorf("CLUSTER and --selector exclude each other")
			}
			if up.selector != "" {
				return nil
			}
			return cli.OneArg("CLUSTER")(cmd, args)
		},
		ValidArgsFunction: o.CompleteFirst(clusterNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := up.validate(); err != nil {
				return err
			}
			if up.selector != "" {
				return up.runFleet(cmd.Context())
			}
			if err := up.complete(cmd.Context(), args[0]); err != nil {
				return err
			}
			return up.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&up.to, "to", "", "The Kubernetes version to reach, such as v1.37.2. Required.")
	flags.StringSliceVar(&up.via, "via", nil, "Versions to go by where the way leads over several minors; default the newest that there is a machine image for.")
	flags.StringVar(&up.imagePattern, "image-pattern", "", "Name of the machine image, such as ubuntu-2404-kube-{{.Version}}; default the name of the present image with the other version.")
	flags.StringSliceVar(&up.pauseBefore, "pause-before", nil, `Wait for "upgrade resume" before these phases: control-plane, workers.`)
	flags.StringSliceVar(&up.workersOnly, "workers-only", nil, "Move these MachineDeployments alone, to the version of the control plane.")
	flags.BoolVar(&up.controlPlane, "control-plane-only", false, "Move the control plane alone.")
	flags.BoolVar(&up.everyMinor, "every-minor", false, "Replace the workers at each minor on the way, and not as seldom as the version skew policy allows.")
	flags.Int32Var(&up.together, "max-concurrent-workers", 1, "How many MachineDeployments of a cluster are moved at once.")
	flags.StringVarP(&up.selector, "selector", "l", "", "Upgrade the clusters with these labels, such as stage=test.")
	flags.IntVar(&up.concurrent, "max-concurrent", 1, "With --selector, how many clusters are upgraded at once.")
	flags.IntVar(&up.maxFailures, "max-failures", 1, "With --selector, how many clusters may have failed before no further one is begun.")
	flags.BoolVar(&up.rollBack, "roll-back", false, "Give the MachineDeployments of a step that fails what they had before, and do not pause for a person.")
	flags.StringSliceVar(&up.force, "force", nil, "Preflight checks, by name, that do not stand in the way: "+strings.Join(upgrade.Checks(), ", ")+".")
	flags.BoolVar(&up.plan, "plan", false, "Show the steps and what stands in the way, and write nothing.")
	flags.BoolVar(&up.check, "check", false, "Show what stands in the way, and write nothing; the exit code is 1 when something does.")
	flags.BoolVar(&up.wait, "wait", false, "Wait until the upgrade is done.")
	flags.DurationVar(&up.timeout, "timeout", 0, "With --wait or --selector, how long to wait; 0 is for ever.")
	flags.StringVar(&up.dryRun, "dry-run", dryRunNone, `Must be "none", "server", or "client". With client only show what would be written; with server let the server check it.`)
	flags.Lookup("dry-run").NoOptDefVal = dryRunClient
	flags.StringVarP(&up.output, "output", "o", "", "Output format of --dry-run, --plan and --check. One of: (json, yaml).")
	cli.RequireFlag(cmd, "to", "VERSION")
	_ = cmd.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions([]string{dryRunNone, dryRunClient, dryRunServer}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("pause-before", cobra.FixedCompletions([]string{"control-plane", "workers"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("force", cobra.FixedCompletions(upgrade.Checks(), cobra.ShellCompDirectiveNoFileComp))
	cmd.AddCommand(newUpgradeStatusCommand(o), newUpgradePauseCommand(o), newUpgradeResumeCommand(o), newUpgradeAbortCommand(o))
	return cmd
}

func (o *upgradeOptions) validate() error {
	target, err := lifecycle.ParseVersion(o.to)
	if err != nil {
		return cli.UsageErrorf("--to: %w", err)
	}
	o.to = "v" + target.String()
	for i, version := range o.via {
		between, err := lifecycle.ParseVersion(version)
		if err != nil {
			return cli.UsageErrorf("--via: %w", err)
		}
		o.via[i] = "v" + between.String()
	}
	for _, phase := range o.pauseBefore {
		if phases[phase] == "" {
			return cli.UsageErrorf("--pause-before: %q is not one of control-plane, workers", phase)
		}
	}
	for _, check := range o.force {
		if !slices.Contains(upgrade.Checks(), check) {
			return cli.UsageErrorf("--force: %q is no check: want one of %s", check, strings.Join(upgrade.Checks(), ", "))
		}
	}
	if err := o.fleetFlags.validate(); err != nil {
		return err
	}
	switch {
	case o.dryRun != dryRunNone && o.dryRun != dryRunClient && o.dryRun != dryRunServer:
		return cli.UsageErrorf("--dry-run must be none, server or client, not %q", o.dryRun)
	case o.output != "" && o.output != "json" && o.output != "yaml":
		return cli.UsageErrorf("--output must be json or yaml, not %q", o.output)
	case o.output != "" && !o.plan && !o.check && o.dryRun == dryRunNone:
		return cli.UsageErrorf("--output goes with --plan, --check or --dry-run; upgrade status shows the upgrade")
	case o.plan && o.check:
		return cli.UsageErrorf("--plan shows what --check does, and the steps: give one of them")
	case o.wait && (o.plan || o.check || o.dryRun != dryRunNone):
		return cli.UsageErrorf("--wait does not go with --plan, --check or --dry-run: nothing would change")
	case o.controlPlane && len(o.workersOnly) > 0:
		return cli.UsageErrorf("--control-plane-only and --workers-only exclude each other")
	case o.together < 1:
		return cli.UsageErrorf("--max-concurrent-workers must be 1 or more, not %d", o.together)
	case o.timeout < 0:
		return cli.UsageErrorf("--timeout must not be negative")
	}
	return nil
}

// phases are the values of --pause-before.
var phases = map[string]lifecyclev1.Phase{"control-plane": lifecyclev1.PhaseControlPlane, "workers": lifecyclev1.PhaseWorkers}

func (o *upgradeOptions) run(ctx context.Context) error {
	if o.plan || o.check {
		return o.showPlan(ctx)
	}
	wanted := o.object()
	if o.dryRun == dryRunClient {
		return o.show(wanted)
	}
	if err := o.write(ctx, wanted); err != nil {
		return err
	}
	if o.dryRun == dryRunServer {
		return o.show(wanted)
	}
	if o.wait {
		return watchUpgrade(ctx, &o.upgradeTarget, wanted, o.timeout)
	}
	fmt.Fprintf(o.ErrOut, "watch it: %s upgrade status %s --watch\n", o.Typed(), o.cluster.Name)
	return nil
}

// object is the ClusterUpgrade of the flags. Its name follows from the cluster and the version, so that the same command
// again finds the same upgrade.
func (o *upgradeOptions) object() *lifecyclev1.ClusterUpgrade {
	u := &lifecyclev1.ClusterUpgrade{
		TypeMeta:   metav1.TypeMeta{APIVersion: lifecyclev1.GroupVersion.String(), Kind: "ClusterUpgrade"},
		ObjectMeta: metav1.ObjectMeta{Namespace: o.cluster.Namespace, Name: o.cluster.Name + "-" + strings.ToLower(o.to), Labels: map[string]string{clusterv1.ClusterNameLabel: o.cluster.Name}},
	}
	u.Spec.ClusterName, u.Spec.Version, u.Spec.Via, u.Spec.Force = o.cluster.Name, o.to, o.via, o.force
	u.Spec.Images.Pattern = o.imagePattern
	for _, phase := range o.pauseBefore {
		u.Spec.PauseBefore = append(u.Spec.PauseBefore, phases[phase])
	}
	if o.together > 1 {
		u.Spec.Workers.MaxConcurrent = &o.together
	}
	if o.everyMinor {
		u.Spec.Workers.Strategy = lifecyclev1.WorkersEveryMinor
	}
	if o.rollBack {
		u.Spec.OnFailure = lifecyclev1.FailureRollBack
	}
	switch {
	case o.controlPlane:
		u.Spec.Scope = lifecyclev1.ScopeControlPlane
	case len(o.workersOnly) > 0:
		u.Spec.Scope, u.Spec.Workers.Only = lifecyclev1.ScopeWorkers, o.workersOnly
	}
	return u
}

// write creates the upgrade, or brings the one of the same name to what the flags ask for.
func (o *upgradeOptions) write(ctx context.Context, wanted *lifecyclev1.ClusterUpgrade) error {
	list, err := o.upgrades(ctx)
	if err != nil {
		return err
	}
	dry := o.dryRun == dryRunServer
	for i := range list {
		other := &list[i]
		switch {
		case other.Name == wanted.Name && !other.Status.Phase.Over():
			return o.change(ctx, other, wanted, dry)
		case other.Name == wanted.Name:
			// One that is over is history: the Cluster remembers it.
			if dry {
				continue
			}
			if err := o.client.Delete(ctx, other, client.Preconditions{UID: &other.UID}); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("remove the upgrade %q, which is over: %w", other.Name, err)
			}
			if err := o.gone(ctx, other); err != nil {
				return err
			}
		case !other.Status.Phase.Over():
			return fmt.Errorf("cluster %q is being upgraded to %s by ClusterUpgrade %q: wait for it (%s upgrade status %s --watch) or abort it (%s upgrade abort %s)",
				o.cluster.Name, other.Spec.Version, other.Name, o.Typed(), o.cluster.Name, o.Typed(), o.cluster.Name)
		}
	}
	var opts []client.CreateOption
	if dry {
		opts = append(opts, client.DryRunAll)
	}
	if err := o.client.Create(ctx, wanted, opts...); err != nil {
		return fmt.Errorf("create ClusterUpgrade %q: %w", wanted.Name, err)
	}
	if !dry {
		fmt.Fprintf(o.Out, "clusterupgrade.%s/%s created\n", lifecyclev1.GroupName, wanted.Name)
	}
	return nil
}

// gone waits until an upgrade that was deleted is gone: its finalizer is taken off in a moment.
func (o *upgradeOptions) gone(ctx context.Context, u *lifecyclev1.ClusterUpgrade) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		err := o.client.Get(ctx, client.ObjectKeyFromObject(u), &lifecyclev1.ClusterUpgrade{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("wait until the upgrade %q, which is over, is removed: %w", u.Name, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the upgrade %q, which is over, is not removed: is the operator running with --controllers=upgrade?", u.Name)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// change brings an upgrade that is under way to what the flags ask for; nothing of it begins anew.
func (o *upgradeOptions) change(ctx context.Context, have, wanted *lifecyclev1.ClusterUpgrade, dry bool) error {
	before := have.DeepCopy()
	paused, abort := have.Spec.Paused, have.Spec.Abort
	have.Spec = wanted.Spec
	have.Spec.Paused, have.Spec.Abort = paused, abort
	have.Spec.Windows, have.Spec.Addons, have.Spec.MachineTimeoutSeconds = before.Spec.Windows, before.Spec.Addons, before.Spec.MachineTimeoutSeconds
	have.Spec.Scope = cmpOr(wanted.Spec.Scope, lifecyclev1.ScopeAll)
	have.Spec.OnFailure = cmpOr(wanted.Spec.OnFailure, lifecyclev1.FailurePause)
	var opts []client.PatchOption
	if dry {
		opts = append(opts, client.DryRunAll)
	}
	if err := o.client.Patch(ctx, have, client.MergeFrom(before), opts...); err != nil {
		return fmt.Errorf("change ClusterUpgrade %q: %w", have.Name, err)
	}
	*wanted = *have
	if ptr.Deref(paused, false) {
		fmt.Fprintf(o.ErrOut, "Warning: the upgrade is paused: resume it with %s upgrade resume %s\n", o.Typed(), o.cluster.Name)
	}
	done := "is under way already"
	if have.Generation != before.Generation {
		done = "changed"
	}
	if !dry {
		fmt.Fprintf(o.Out, "clusterupgrade.%s/%s %s\n", lifecyclev1.GroupName, have.Name, done)
	}
	return nil
}

func cmpOr[T comparable](value, otherwise T) T {
	var zero T
	if value == zero {
		return otherwise
	}
	return value
}

// show prints an upgrade that is not written.
func (o *upgradeOptions) show(u *lifecyclev1.ClusterUpgrade) error {
	if o.output == "" {
		how := "dry run"
		if o.dryRun == dryRunServer {
			how = "server dry run"
		}
		fmt.Fprintf(o.Out, "clusterupgrade.%s/%s created (%s)\n", lifecyclev1.GroupName, u.Name, how)
		return nil
	}
	return printData(o.Out, o.output, u)
}
