package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/kubectl/pkg/util/templates"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lifecyclev1 "github.com/millwright-dev/millwright/api/lifecycle/v1alpha1"
	"github.com/millwright-dev/millwright/internal/cli"
	"github.com/millwright-dev/millwright/internal/graph"
)

var upgradeStepColumns = cli.Columns{{Name: "Leg"}, {Name: "Step"}, {Name: "Name"}, {Name: "From"}, {Name: "To"}, {Name: "Machines"}, {Name: "State"}, {Name: "Took"}}

// upgradeStatusOptions show how far an upgrade is.
type upgradeStatusOptions struct {
	upgradeTarget
	watch   bool
	timeout time.Duration
	output  string
}

func newUpgradeStatusCommand(o *cli.Options) *cobra.Command {
	status := &upgradeStatusOptions{upgradeTarget: upgradeTarget{Options: o}}
	cmd := &cobra.Command{
		Use:   "status CLUSTER",
		Short: "Show how far the upgrade of a cluster is",
		Long: templates.LongDesc(`
			Show the steps of a cluster's upgrade that is under way, or of its last one, and what is being waited for.

			With --watch the command ends when the upgrade does; it fails when the upgrade was aborted.`),
		Example: templates.Examples(`
			# Show the steps
			{{kubectl}} upgrade status prod

			# Watch until it is done
			{{kubectl}} upgrade status prod --watch`),
		Args:              cli.OneArg("CLUSTER"),
		ValidArgsFunction: o.CompleteFirst(clusterNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case status.output != "" && status.output != "json" && status.output != "yaml":
				return cli.UsageErrorf("--output must be json or yaml, not %q", status.output)
			case status.output != "" && status.watch:
				return cli.UsageErrorf("--output does not go with --watch: kubectl get clusterupgrades --watch -o %s does that", status.output)
			case status.timeout < 0:
				return cli.UsageErrorf("--timeout must not be negative")
			}
			if err := status.complete(cmd.Context(), args[0]); err != nil {
				return err
			}
			return status.run(cmd.Context())
		},
	}
	cmd.Flags().BoolVarP(&status.watch, "watch", "w", false, "Watch until the upgrade is over.")
	cmd.Flags().DurationVar(&status.timeout, "timeout", 0, "With --watch, how long to watch; 0 is for ever.")
	cmd.Flags().StringVarP(&status.output, "output", "o", "", "Output format. One of: (json, yaml).")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (o *upgradeStatusOptions) run(ctx context.Context) error {
	u, err := o.current(ctx)
	if err != nil {
		return err
	}
	if o.watch {
		return watchUpgrade(ctx, &o.upgradeTarget, u, o.timeout)
	}
	if o.output != "" {
		u.APIVersion, u.Kind = lifecyclev1.GroupVersion.String(), "ClusterUpgrade"
		u.ManagedFields = nil
		return printData(o.Out, o.output, u)
	}
	fmt.Fprintln(o.Out, upgradeLine(u))
	if len(u.Status.Steps) > 0 {
		if err := printers.NewTablePrinter(printers.PrintOptions{}).PrintObj(stepTable(u, time.Now()), o.Out); err != nil {
			return err
		}
	}
	if len(u.Status.Findings) > 0 {
		fmt.Fprintln(o.Out)
		return printers.NewTablePrinter(printers.PrintOptions{}).PrintObj(statusFindings(u), o.Out)
	}
	return nil
}

// upgradeLine says in a line where an upgrade stands.
func upgradeLine(u *lifecyclev1.ClusterUpgrade) string {
	phase := string(u.Status.Phase)
	if phase == "" {
		phase = string(lifecyclev1.UpgradePending)
	}
	message := u.Status.Message
	if message == "" {
		message = "the operator has not seen it yet"
	}
	return fmt.Sprintf("%s to %s: %s: %s", u.Spec.ClusterName, u.Spec.Version, phase, oneLine(message))
}

func stepTable(u *lifecyclev1.ClusterUpgrade, now time.Time) *metav1.Table {
	table := upgradeStepColumns.Table()
	for _, step := range u.Status.Steps {
		machines := ""
		if step.Machines > 0 {
			machines = fmt.Sprintf("%d/%d", step.Done, step.Machines)
		}
		cli.AddRow(table, u, strconv.Itoa(int(step.Leg)), step.Kind, step.Name, step.From, step.To, machines, string(step.State), stepTook(&step, now))
	}
	return table
}

func statusFindings(u *lifecyclev1.ClusterUpgrade) *metav1.Table {
	table := findingColumns.Table()
	for _, f := range u.Status.Findings {
		cli.AddRow(table, u, string(f.Severity), f.Check, f.Object, oneLine(f.Message))
	}
	return table
}

// watchUpgrade shows how an upgrade advances until it is over.
func watchUpgrade(ctx context.Context, o *upgradeTarget, u *lifecyclev1.ClusterUpgrade, timeout time.Duration) error {
	follower := graph.NewFollower(o.client)
	progress := cli.NewProgress(o.Out)
	teller := &stepTeller{}
	err := cli.Wait(ctx, timeout, follower.Changed(), progress, tellLoss(follower, func() (cli.State, error) {
		source := graph.Source{List: &lifecyclev1.ClusterUpgradeList{}, Options: []client.ListOption{client.InNamespace(u.Namespace)}}
		if err := follower.Follow(ctx, source); err != nil {
			return cli.State{}, err
		}
		objects, err := follower.Objects()
		if err != nil {
			return cli.State{}, err
		}
		for _, obj := range objects {
			if now, ok := obj.(*lifecyclev1.ClusterUpgrade); ok && now.UID == u.UID {
				return upgradeState(now, teller, time.Now())
			}
		}
		return cli.State{}, fmt.Errorf("the upgrade %q was deleted meanwhile", u.Name)
	}))
	if errors.Is(err, context.Canceled) {
		return &cli.Error{Code: cli.ExitInterrupted, Err: fmt.Errorf("interrupted: the upgrade goes on by itself; %s upgrade status %s --watch watches it again", o.Typed(), o.cluster.Name)}
	}
	return err
}

// upgradeState is what somebody sees who waits for an upgrade.
func upgradeState(u *lifecyclev1.ClusterUpgrade, teller *stepTeller, now time.Time) (cli.State, error) {
	line := upgradeLine(u)
	state := cli.State{Done: u.Status.Phase == lifecyclev1.UpgradeCompleted, Missing: line,
		View: cli.View{Screen: upgradeScreen(u, now), Changes: append(teller.tell(u, now), line)}}
	if u.Status.Phase == lifecyclev1.UpgradeAborted {
		return state, errors.New(line)
	}
	return state, nil
}
