package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/util/templates"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lifecyclev1 "github.com/millwright-dev/millwright/api/lifecycle/v1alpha1"
	"github.com/millwright-dev/millwright/internal/cli"
)

// upgradeControlOptions steer an upgrade that is under way.
type upgradeControlOptions struct {
	upgradeTarget
	changeFlags

	// change returns what was done, empty where there was nothing to do.
	change func(*lifecyclev1.ClusterUpgrade) string
	// warns says what the user must confirm; nil when nothing.
	warns func(*lifecyclev1.ClusterUpgrade) []string
}

func newUpgradePauseCommand(o *cli.Options) *cobra.Command {
	pause := &upgradeControlOptions{upgradeTarget: upgradeTarget{Options: o}}
	pause.change = func(u *lifecyclev1.ClusterUpgrade) string {
		if ptr.Deref(u.Spec.Paused, false) {
			return ""
		}
		u.Spec.Paused = ptr.To(true)
		return "paused"
	}
	return pause.command(&cobra.Command{
		Use:   "pause CLUSTER",
		Short: "Hold the upgrade of a cluster where it is",
		Long: templates.LongDesc(`
			Hold the upgrade of a cluster where it is: no step begins, and the rollouts that it began make no further
			machine. Machines that come or go already do so to the end.`),
		Example: templates.Examples(`
			# Hold an upgrade over the weekend
			{{kubectl}} upgrade pause prod`),
	})
}

func newUpgradeResumeCommand(o *cli.Options) *cobra.Command {
	resume := &upgradeControlOptions{upgradeTarget: upgradeTarget{Options: o}}
	resume.change = resumeUpgrade
	return resume.command(&cobra.Command{
		Use:   "resume CLUSTER",
		Short: "Let the upgrade of a cluster go on",
		Long: templates.LongDesc(`
			Let the upgrade of a cluster go on that was paused, or that waits for a person before a phase. One that is
			blocked or failed looks at once whether what stood in the way is mended; by itself it does so every half minute.`),
		Example: templates.Examples(`
			# Approve the phase that the upgrade waits before
			{{kubectl}} upgrade resume prod`),
	})
}

func newUpgradeAbortCommand(o *cli.Options) *cobra.Command {
	abort := &upgradeControlOptions{upgradeTarget: upgradeTarget{Options: o}}
	abort.change = func(u *lifecyclev1.ClusterUpgrade) string {
		if ptr.Deref(u.Spec.Abort, false) {
			return ""
		}
		u.Spec.Abort = ptr.To(true)
		return "aborted"
	}
	abort.warns = func(u *lifecyclev1.ClusterUpgrade) []string {
		return []string{
			fmt.Sprintf("the upgrade of cluster %q to %s ends: workers whose move is not over go back to what they had", u.Spec.ClusterName, u.Spec.Version),
			"a control plane whose move has begun comes to the new version: Kubernetes has no way back",
		}
	}
	cmd := abort.command(&cobra.Command{
		Use:   "abort CLUSTER",
		Short: "End the upgrade of a cluster",
		Long: templates.LongDesc(`
			End the upgrade of a cluster. MachineDeployments whose move is not over go back to what they had; those that
			are done stay, and so does the control plane: Kubernetes has no way back for it. It asks on a terminal.`),
		Example: templates.Examples(`
			# End an upgrade whose new machines do not come up
			{{kubectl}} upgrade abort prod`),
	})
	abort.addYes(cmd)
	return cmd
}

// resumeUpgrade ends a pause, approves the phase that is waited before, or has the operator look again at what stood in the
// way.
func resumeUpgrade(u *lifecyclev1.ClusterUpgrade) string {
	if ptr.Deref(u.Spec.Paused, false) {
		u.Spec.Paused = nil
		return "resumed"
	}
	switch u.Status.Phase {
	case lifecyclev1.UpgradePaused:
	case lifecyclev1.UpgradeBlocked, lifecyclev1.UpgradeFailed:
		annotateUpgrade(u, lifecyclev1.RetriedAnnotation, time.Now().UTC().Format(time.RFC3339Nano))
		return "looks again at what it waits for"
	default:
		return ""
	}
	approved := u.Annotations[lifecyclev1.ApprovedAnnotation]
	for _, phase := range u.Spec.PauseBefore {
		if strings.Contains(","+strings.ToLower(approved)+",", ","+strings.ToLower(string(phase))+",") {
			continue
		}
		approved = strings.TrimPrefix(approved+","+string(phase), ",")
		annotateUpgrade(u, lifecyclev1.ApprovedAnnotation, approved)
		return "approved: " + string(phase)
	}
	return ""
}

func annotateUpgrade(u *lifecyclev1.ClusterUpgrade, key, value string) {
	if u.Annotations == nil {
		u.Annotations = map[string]string{}
	}
	u.Annotations[key] = value
}

func (o *upgradeControlOptions) command(cmd *cobra.Command) *cobra.Command {
	cmd.Args = cli.OneArg("CLUSTER")
	cmd.ValidArgsFunction = o.CompleteFirst(clusterNames)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := o.changeFlags.validate(); err != nil {
			return err
		}
		if err := o.complete(cmd.Context(), args[0]); err != nil {
			return err
		}
		return o.run(cmd.Context())
	}
	o.addDryRun(cmd)
	return cmd
}

func (o *upgradeControlOptions) run(ctx context.Context) error {
	u, err := o.current(ctx)
	if err != nil {
		return err
	}
	if u.Status.Phase.Over() {
		return fmt.Errorf("the upgrade of cluster %q to %s is over (%s): there is nothing to change", o.cluster.Name, u.Spec.Version, u.Status.Phase)
	}
	before := u.DeepCopy()
	resource := fmt.Sprintf("clusterupgrade.%s/%s", lifecyclev1.GroupName, u.Name)
	done := o.change(u)
	if done == "" {
		fmt.Fprintf(o.Out, "%s unchanged%s: it is %s\n", resource, o.mode(), cmpOr(string(u.Status.Phase), string(lifecyclev1.UpgradePending)))
		return nil
	}
	if o.warns != nil && o.dryRun == dryRunNone {
		if err := o.Confirm(o.yes, o.warns(u)...); err != nil {
			return err
		}
	}
	if o.dryRun != dryRunClient {
		var opts []client.PatchOption
		if o.dryRun == dryRunServer {
			opts = append(opts, client.DryRunAll)
		}
		if err := o.client.Patch(ctx, u, client.MergeFrom(before), opts...); err != nil {
			return fmt.Errorf("change ClusterUpgrade %q: %w", u.Name, err)
		}
	}
	fmt.Fprintf(o.Out, "%s %s%s\n", resource, done, o.mode())
	return nil
}
