package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/millwright-dev/millwright/internal/addon"
	"github.com/millwright-dev/millwright/internal/apply"
	"github.com/millwright-dev/millwright/internal/cli"
)

// Values of --dry-run, as kubectl has them.
const (
	dryRunNone   = "none"
	dryRunClient = "client"
	dryRunServer = "server"
)

// installer is the field manager under which kubeadm writes CoreDNS and
// kube-proxy. It only ever installs what an add-on replaces, so that its fields
// are taken over without --force-conflicts.
const installer = "kubeadm"

// installOptions put add-ons on a cluster.
type installOptions struct {
	*cli.Options
	target targetFlags
	bundle bundleFlags
	facts  factFlags

	dryRun         string
	wait           bool
	timeout        time.Duration
	forceConflicts bool
	// back is set where an older version is gone back to: upgradesFrom says nothing of that way.
	back bool

	// takeFrom are field managers, beyond kubeadm, from whom fields are taken without force.
	takeFrom []string

	// confirm is asked before a plan is carried out; may be nil.
	confirm func(*target, *apply.Plan) error

	wanted []request
}

func newInstallCommand(o *cli.Options) *cobra.Command {
	install := &installOptions{Options: o}
	cmd := &cobra.Command{
		Use:   "install NAME...",
		Short: "Put add-ons on a cluster, or bring them to another version",
		Long: templates.LongDesc(`
			Put add-ons on a cluster by server-side apply, or bring them to another version.

			An object that is already as it should be is not written. Objects that the version before had
			and this one has not are pruned once the new ones are healthy; Namespaces,
			CustomResourceDefinitions and PersistentVolumeClaims never are. What kubeadm installed
			(CoreDNS, kube-proxy) is taken over in place.

			A field that somebody else owns with another value is a conflict: nothing is applied, and
			the other field manager is named.`),
		Example: templates.Examples(`
			# Put Calico on the cluster of the current context
			{{kubectl}} install calico

			# Put several add-ons on a workload cluster, and wait until they are healthy
			{{kubectl}} install calico metrics-server --cluster prod --wait

			# See what would change
			{{kubectl}} install coredns --dry-run=server

			# Choose a version and a parameter, with the published files from a folder
			{{kubectl}} install calico --version 3.31.7 --set mtu=1400 --mirror ./mirror`),
		Args:              cli.AtLeastOneArg("NAME"),
		ValidArgsFunction: completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := install.complete(cmd.Context(), args); err != nil {
				return err
			}
			return install.run(cmd.Context())
		},
	}
	install.target.addFlags(cmd, o)
	install.bundle.addFlags(cmd)
	install.facts.addFlags(cmd)
	install.addApplyFlags(cmd)
	return cmd
}

// addApplyFlags adds the flags of every command that applies.
func (o *installOptions) addApplyFlags(cmd *cobra.Command) {
	addDryRunFlag(cmd, &o.dryRun)
	cmd.Flags().BoolVar(&o.wait, "wait", false, "Wait until the objects are healthy.")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 5*time.Minute, "How long to wait for health; zero waits for ever.")
	cmd.Flags().BoolVar(&o.forceConflicts, "force-conflicts", false, "Take over fields that other managers own with another value.")
	o.addTakeFromFlag(cmd)
}

func (o *installOptions) addTakeFromFlag(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&o.takeFrom, "take-from", nil, "Field managers that only installed what is there, as kubeadm did: all they own becomes the add-on's. Can be repeated.")
}

func addDryRunFlag(cmd *cobra.Command, into *string) {
	cmd.Flags().StringVar(into, "dry-run", dryRunNone, "Must be \"none\", \"server\", or \"client\". "+
		"With client the objects are only named; with server the cluster tells what would become of each. Nothing is written.")
	cmd.Flags().Lookup("dry-run").NoOptDefVal = dryRunClient
	_ = cmd.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions([]string{dryRunNone, dryRunServer, dryRunClient}, cobra.ShellCompDirectiveNoFileComp))
}

func validateDryRun(value string) error {
	switch value {
	case dryRunNone, dryRunClient, dryRunServer:
		return nil
	}
	return cli.UsageErrorf("--dry-run %q: want none, server or client", value)
}

// dryRunSuffix ends each line of a dry run, in kubectl's words.
func dryRunSuffix(value string) string {
	if value == dryRunClient {
		return " (dry run)"
	}
	return " (server dry run)"
}

func (o *installOptions) complete(ctx context.Context, args []string) error {
	if err := validateDryRun(o.dryRun); err != nil {
		return err
	}
	if o.timeout < 0 {
		return cli.UsageErrorf("--timeout must not be negative")
	}
	catalogue, err := o.bundle.load(ctx)
	if err != nil {
		return err
	}
	if err := o.bundle.complete(o.Options, args); err != nil {
		return err
	}
	for _, name := range args {
		entry, err := catalogue.Addon(name)
		if err != nil {
			return err
		}
		o.wanted = append(o.wanted, request{entry, o.bundle.version, o.bundle.values, o.bundle.custom})
	}
	return o.facts.complete()
}

func (o *installOptions) run(ctx context.Context) error {
	target, err := o.target.connect(ctx, o.Options)
	if err != nil {
		return err
	}
	return o.installOn(ctx, target)
}

// installOn puts the add-ons on a cluster that answers.
func (o *installOptions) installOn(ctx context.Context, target *target) error {
	engine := o.engine(target)
	sets, err := o.renderAll(ctx, engine, target)
	if err != nil {
		return err
	}
	for _, set := range sets {
		if err := o.install(ctx, engine, target, set); err != nil {
			return err
		}
	}
	return nil
}

// renderAll renders what is wanted, in the order in which it is to be applied: a
// mistake in the last must not leave half of them.
func (o *installOptions) renderAll(ctx context.Context, engine *apply.Engine, target *target) ([]*rendered, error) {
	facts, err := target.place().Facts(ctx)
	if err != nil {
		return nil, err
	}
	var sets []*rendered
	for _, wanted := range o.wanted {
		set, err := o.bundle.render(ctx, o.Options, wanted, o.facts.over(facts))
		if err != nil {
			return nil, err
		}
		sets = append(sets, set)
	}
	records, err := engine.Records(ctx)
	if err != nil {
		return nil, err
	}
	installed := make([]string, 0, len(records))
	for _, record := range records {
		installed = append(installed, record.Name)
	}
	sets, missing, err := inOrder(sets, installed)
	if err != nil {
		return nil, err
	}
	for _, text := range missing {
		fmt.Fprintln(o.ErrOut, "warning: "+text)
	}
	return sets, nil
}

func (o *installOptions) engine(target *target) *apply.Engine {
	return &apply.Engine{
		Client:        target.client,
		Policy:        apply.Policy{ForceConflicts: o.forceConflicts, TakeFrom: append([]string{installer}, o.takeFrom...)},
		HealthTimeout: o.timeout,
		Done:          func(id apply.ID, action apply.Action) { printAction(o.Out, id, action, "") },
		Unhealthy:     o.sayUnhealthy,
	}
}

func (o *installOptions) install(ctx context.Context, engine *apply.Engine, target *target, set *rendered) error {
	if o.dryRun == dryRunClient {
		for _, object := range set.objects {
			printAction(o.Out, apply.IDOf(object), apply.ActionConfigure, dryRunSuffix(o.dryRun))
		}
		return nil
	}
	if err := o.compareWithInstalled(ctx, engine, set); err != nil {
		return err
	}
	plan, err := o.plan(ctx, engine, target, set)
	if err != nil {
		return err
	}
	o.sayTaken(plan)
	if o.dryRun == dryRunServer {
		for _, change := range plan.Changes {
			printAction(o.Out, change.ID, change.Action, dryRunSuffix(o.dryRun))
		}
		for _, removal := range plan.Removals {
			printAction(o.Out, removal.ID, removal.Action, dryRunSuffix(o.dryRun))
		}
		return nil
	}
	if o.confirm != nil {
		if err := o.confirm(target, plan); err != nil {
			return err
		}
	}
	if err := target.takeOver(ctx, o.Options, set.Addon.Name); err != nil {
		return err
	}
	engine.Check = addon.Check(set.Version)
	if err := engine.Apply(ctx, plan, o.wait); err != nil {
		return o.explainApply(err)
	}
	fmt.Fprintf(o.ErrOut, "%s %s on %s: %s.\n", set.Addon.Name, set.Version.Version, target.name, summary(plan))
	return nil
}

// plan makes what the cluster has and what was rendered into a plan.
func (o *installOptions) plan(ctx context.Context, engine *apply.Engine, target *target, set *rendered) (*apply.Plan, error) {
	made, notices, err := addon.MakeSet(ctx, target.client, set.input, set.objects)
	if err != nil {
		return nil, err
	}
	for _, notice := range notices {
		fmt.Fprintln(o.ErrOut, "note: "+notice)
	}
	plan, err := engine.Plan(ctx, made)
	if err != nil {
		return nil, explainConflict(set.Addon.Name, err)
	}
	return plan, nil
}

// compareWithInstalled refuses a step that the new version does not allow, and
// warns of parameters that were set before and are not now.
func (o *installOptions) compareWithInstalled(ctx context.Context, engine *apply.Engine, set *rendered) error {
	record, err := engine.Record(ctx, set.Addon.Name)
	var absent *apply.NotInstalledError
	if errors.As(err, &absent) {
		return nil
	}
	if err != nil || o.back {
		return err
	}
	ok, err := set.Version.UpgradesFromVersion(record.Version)
	if err != nil {
		return fmt.Errorf("add-on %s is installed as %q: %w", set.Addon.Name, record.Version, err)
	}
	if !ok {
		return fmt.Errorf("%s %s cannot be reached from %s in one step, only from %s: install such a version first",
			set.Addon.Name, set.Version.Version, record.Version, set.Version.UpgradesFrom)
	}
	for _, name := range sortedNames(record.Parameters) {
		if _, given := set.input.Values[name]; !given {
			fmt.Fprintf(o.ErrOut, "warning: parameter %s of %s was %v and goes back to its default: give it again with --set\n",
				name, set.Addon.Name, record.Parameters[name])
		}
	}
	if record.Customization != "" && set.input.Custom.Empty() {
		fmt.Fprintf(o.ErrOut, "warning: %s was customized and goes back to the bundle's own objects: give it again with --customize\n", set.Addon.Name)
	}
	return nil
}

func sortedNames(parameters map[string]any) []string { return slices.Sorted(maps.Keys(parameters)) }

func explainConflict(name string, err error) error {
	var conflict *apply.ConflictError
	if errors.As(err, &conflict) {
		return fmt.Errorf("add-on %s is not applied:\n%w\ntake the fields over with --force-conflicts, or leave the objects to their managers", name, err)
	}
	return fmt.Errorf("add-on %s is not applied: %w", name, err)
}

func (o *installOptions) explainApply(err error) error {
	var late *apply.NotHealthyError
	if errors.As(err, &late) && errors.Is(err, context.DeadlineExceeded) {
		return &cli.Error{Code: cli.ExitTimedOut, Err: err}
	}
	return err
}

// sayTaken names the managers from whom objects or fields are taken, and the workloads whose pods restart.
func (o *installOptions) sayTaken(plan *apply.Plan) {
	adopted := map[string]int{}
	for _, change := range plan.Changes {
		for _, manager := range change.Adopts {
			adopted[manager]++
		}
	}
	for _, manager := range slices.Sorted(maps.Keys(adopted)) {
		fmt.Fprintf(o.ErrOut, "note: %s: %d objects are adopted from %s\n", plan.Set.Name, adopted[manager], manager)
	}
	for _, change := range plan.Changes {
		if change.Restarts() {
			fmt.Fprintf(o.ErrOut, "note: the pods of %s restart\n", change.ID.Full())
		}
		for _, conflict := range change.Conflicts {
			fmt.Fprintf(o.ErrOut, "note: %s of %s is taken over from %q\n", conflict.Field, change.ID.Full(), conflict.Manager)
		}
	}
}

func (o *installOptions) sayUnhealthy(waiting []apply.Health) {
	if len(waiting) == 0 {
		return
	}
	var names []string
	for _, health := range waiting {
		names = append(names, fmt.Sprintf("%s (%s)", health.ID, health.Message))
	}
	fmt.Fprintf(o.ErrOut, "waiting for %s\n", strings.Join(names, ", "))
}
