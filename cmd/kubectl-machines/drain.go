package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/kubectl/pkg/cmd/util"
	kubectldrain "k8s.io/kubectl/pkg/drain"
	"k8s.io/kubectl/pkg/util/templates"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/cli"
	"github.com/millwright-dev/millwright/internal/drain"
)

// drainPause is the time between two rounds over the pods: a drain follows no watch, since what a budget allows is only
// known when one asks.
const drainPause = time.Second

// drainOptions empty the Node of a machine.
type drainOptions struct {
	*cli.Options
	changeFlags

	name             string
	ignoreDaemonSets bool
	deleteEmptyDir   bool
	force            bool
	gracePeriod      int
	namespace        string
	client           client.WithWatch
}

func newDrainCommand(o *cli.Options) *cobra.Command {
	d := &drainOptions{Options: o}
	cmd := &cobra.Command{
		Use:   "drain MACHINE",
		Short: "Cordon the node of a machine and evict its pods",
		Long: templates.LongDesc(`
			Cordon the node of a machine in its workload cluster, and evict the pods that run there, as the operator
			does before it removes a machine.

			Disruption budgets are respected, and so are the MachineDrainRules of the machine's namespace and the
			pods' label cluster.x-k8s.io/drain: they say which pods are left alone, waited for, or evicted last.
			The machine stays; "uncordon" lets pods on it again.`),
		Example: templates.Examples(`
			# Empty a machine before work on its host
			{{kubectl}} drain prod-md-0-x7k2p --delete-emptydir-data

			# Give each pod a minute, and all of it ten
			{{kubectl}} drain prod-md-0-x7k2p --grace-period 60 --timeout 10m`),
		Args:              cli.OneArg("MACHINE"),
		ValidArgsFunction: o.CompleteFirst(machineNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := d.validateArgs(args); err != nil {
				return err
			}
			if err := d.complete(cmd.Context()); err != nil {
				return err
			}
			return d.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&d.ignoreDaemonSets, "ignore-daemonsets", true, "Leave the pods of DaemonSets alone; else their presence is an error.")
	flags.BoolVar(&d.deleteEmptyDir, "delete-emptydir-data", false, "Go on even if pods use emptyDir, whose data is lost when they are evicted.")
	flags.BoolVar(&d.force, "force", false, "Go on even if there are pods without a controller, which do not come back elsewhere.")
	flags.IntVar(&d.gracePeriod, "grace-period", -1, "Seconds given to each pod to end; -1 is what the pod itself says.")
	flags.DurationVar(&d.timeout, "timeout", 0, "How long to go on before giving up; 0 is for ever.")
	d.addDryRun(cmd)
	return cmd
}

func (o *drainOptions) validateArgs(args []string) error {
	var err error
	if o.name, err = machineArgument(args[0]); err != nil {
		return err
	}
	return o.validate()
}

func (o *drainOptions) complete(ctx context.Context) error {
	var err error
	if o.namespace, err = o.Namespace(); err != nil {
		return err
	}
	o.client, err = o.ClusterAPI(ctx)
	return err
}

func (o *drainOptions) run(ctx context.Context) error {
	m, err := readMachineNode(ctx, o.client, client.ObjectKey{Namespace: o.namespace, Name: o.name})
	if err != nil {
		return err
	}
	rules, err := o.rules(ctx, m.machine)
	if err != nil {
		return err
	}
	helper := o.helper(ctx, m)
	// What kubectl refuses is refused before anything is changed.
	if _, errs := helper.GetPodsForDeletion(m.node.Name); len(errs) > 0 {
		return fmt.Errorf("node %q of machine %q: %w", m.node.Name, o.name, errors.Join(errs...))
	}
	if err := setCordon(ctx, o.Options, &o.changeFlags, m, true); err != nil {
		return err
	}
	if o.dryRun != dryRunNone {
		return o.rehearse(ctx, helper, m, rules)
	}
	if err := o.follow(ctx, helper, m, rules); err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "node/%s drained\n", m.node.Name)
	return nil
}

func (o *drainOptions) helper(ctx context.Context, m machineNode) *kubectldrain.Helper {
	helper := &kubectldrain.Helper{
		Ctx:                 ctx,
		Client:              m.client,
		Force:               o.force,
		GracePeriodSeconds:  o.gracePeriod,
		IgnoreAllDaemonSets: o.ignoreDaemonSets,
		DeleteEmptyDirData:  o.deleteEmptyDir,
		Out:                 io.Discard,
		ErrOut:              io.Discard,
	}
	for _, c := range m.node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionUnknown {
			fmt.Fprintf(o.ErrOut, "Warning: the kubelet of node %s does not answer: pods are not waited for\n", m.node.Name)
			drain.ForSilentKubelet(helper)
		}
	}
	switch o.dryRun {
	case dryRunClient:
		helper.DryRunStrategy = util.DryRunClient
	case dryRunServer:
		helper.DryRunStrategy = util.DryRunServer
	}
	return helper
}

// rules reads the MachineDrainRules; a management cluster older than they are has none.
func (o *drainOptions) rules(ctx context.Context, machine *clusterv1.Machine) (drain.Rules, error) {
	list := &clusterv1.MachineDrainRuleList{}
	if err := o.client.List(ctx, list, client.InNamespace(o.namespace)); err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("list the MachineDrainRules of namespace %s: %w", o.namespace, err)
	}
	cluster, err := getCluster(ctx, o.client, client.ObjectKey{Namespace: o.namespace, Name: machine.Spec.ClusterName})
	if err != nil {
		return nil, err
	}
	return drain.RulesFor(machine, cluster, list.Items)
}

// follow goes round the pods until none is left.
func (o *drainOptions) follow(ctx context.Context, helper *kubectldrain.Helper, m machineNode, rules drain.Rules) error {
	ticker := time.NewTicker(drainPause)
	defer ticker.Stop()
	again := make(chan struct{}, 1)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		for {
			select {
			case <-ticker.C:
				select {
				case again <- struct{}{}:
				default:
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	news := newsOnly()
	return cli.Wait(ctx, o.timeout, again, o.NewProgress(), func() (cli.State, error) {
		progress, err := drain.Pass(ctx, helper, m.node.Name, rules)
		if err != nil {
			return cli.State{}, fmt.Errorf("machine %q: %w", o.name, err)
		}
		lines := progress.Lines()
		return cli.State{
			Done:    progress.Done(),
			Missing: fmt.Sprintf("node %s: %s", m.node.Name, strings.Join(lines, "; ")),
			View:    cli.View{Screen: lines, Changes: news(lines)},
		}, nil
	})
}

// rehearse says which pods would be evicted first, and what would hold up the others.
func (o *drainOptions) rehearse(ctx context.Context, helper *kubectldrain.Helper, m machineNode, rules drain.Rules) error {
	progress, err := drain.Pass(ctx, helper, m.node.Name, rules)
	if err != nil {
		return fmt.Errorf("machine %q: %w", o.name, err)
	}
	for _, pod := range progress.Evicted {
		fmt.Fprintf(o.Out, "pod %s evicted%s\n", pod, o.mode())
	}
	progress.Terminating = nil
	for _, line := range progress.Lines() {
		fmt.Fprintln(o.Out, line)
	}
	return nil
}
