package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubectl/pkg/util/templates"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/cli"
)

// deleteOptions remove machines.
type deleteOptions struct {
	*cli.Options
	changeFlags

	names     []string
	replace   bool
	wait      bool
	namespace string
	client    client.WithWatch
}

func newDeleteCommand(o *cli.Options) *cobra.Command {
	del := &deleteOptions{Options: o}
	cmd := &cobra.Command{
		Use:   "delete MACHINE...",
		Short: "Remove machines, and lower the number of machines that is wanted",
		Long: templates.LongDesc(`
			Remove these very machines of one cluster, with their hosts.

			Each is marked as the one that goes next, and the replicas of its MachineDeployment, MachineSet or
			control plane are lowered by as many, so that none comes in its place. Nodes are drained first. With
			--replace the replicas stay, and others come when these are gone; "replace" has the other one ready
			before. Running the command again does not lower the replicas again.`),
		Example: templates.Examples(`
			# Remove two machines, and wait until they are gone
			{{kubectl}} delete prod-md-0-x7k2p prod-md-0-9qw4c --wait

			# See what that would do
			{{kubectl}} delete prod-md-0-x7k2p --dry-run

			# Have a new machine made for a broken one
			{{kubectl}} delete prod-md-0-x7k2p --replace`),
		Args:              cli.AtLeastOneArg("MACHINE"),
		ValidArgsFunction: o.CompleteNames(machineNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := del.validateArgs(args); err != nil {
				return err
			}
			if err := del.complete(cmd.Context()); err != nil {
				return err
			}
			return del.run(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&del.replace, "replace", false, "Keep the number of machines: others come in place of these.")
	cmd.Flags().BoolVar(&del.wait, "wait", false, "Wait until the machines are gone, and with --replace until the others are there.")
	cmd.Flags().DurationVar(&del.timeout, "timeout", 15*time.Minute, "With --wait, how long to wait; 0 is for ever.")
	del.addDryRun(cmd)
	del.addYes(cmd)
	del.addOutput(cmd)
	return cmd
}

func (o *deleteOptions) validateArgs(args []string) error {
	for _, arg := range args {
		name, err := machineArgument(arg)
		if err != nil {
			return err
		}
		if !slices.Contains(o.names, name) {
			o.names = append(o.names, name)
		}
	}
	if o.wait && o.dryRun != dryRunNone {
		return cli.UsageErrorf("--wait does not go with --dry-run: nothing would change")
	}
	return o.validate()
}

func (o *deleteOptions) complete(ctx context.Context) error {
	var err error
	if o.namespace, err = o.Namespace(); err != nil {
		return err
	}
	o.client, err = o.ClusterAPI(ctx)
	return err
}

func (o *deleteOptions) run(ctx context.Context) error {
	in, err := o.read(ctx)
	if err != nil {
		return err
	}
	plan, err := planDelete(in)
	if err != nil {
		return err
	}
	for _, warning := range plan.warnings {
		fmt.Fprintf(o.ErrOut, "Warning: %s\n", warning)
	}
	if o.dryRun == dryRunNone {
		if what := o.whatDies(plan, in.cluster.Name); len(what) > 0 {
			if err := o.Confirm(o.yes, what...); err != nil {
				return err
			}
		}
	}
	if err := o.write(ctx, plan); err != nil {
		return err
	}
	o.report(plan)
	if o.wait {
		return o.waitFor(ctx, client.ObjectKeyFromObject(in.cluster), in.machines)
	}
	return nil
}

// read reads the machines, and what is around them in their cluster.
func (o *deleteOptions) read(ctx context.Context) (deleteInput, error) {
	in := deleteInput{replace: o.replace}
	for _, name := range o.names {
		machine, err := getMachine(ctx, o.client, client.ObjectKey{Namespace: o.namespace, Name: name})
		if err != nil {
			return in, err
		}
		if first := in.machines; len(first) > 0 && first[0].Spec.ClusterName != machine.Spec.ClusterName {
			return in, fmt.Errorf("machine %q is of cluster %q, and machine %q of %q: delete those of one cluster at a time",
				first[0].Name, first[0].Spec.ClusterName, name, machine.Spec.ClusterName)
		}
		owned, err := readOwner(ctx, o.client, machine)
		if err != nil {
			return in, err
		}
		in.machines = append(in.machines, owned)
	}
	name := in.machines[0].Spec.ClusterName
	var err error
	if in.cluster, err = getCluster(ctx, o.client, client.ObjectKey{Namespace: o.namespace, Name: name}); err != nil {
		return in, err
	}
	machines, sets := &clusterv1.MachineList{}, &clusterv1.MachineSetList{}
	for _, list := range []client.ObjectList{machines, sets} {
		if err := o.client.List(ctx, list, client.InNamespace(o.namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: name}); err != nil {
			return in, fmt.Errorf("list what belongs to cluster %q: %w", name, err)
		}
	}
	in.all, in.sets = machines.Items, sets.Items
	return in, nil
}

// whatDies is what the user is asked about; nothing when all is on its way already.
func (o *deleteOptions) whatDies(plan deletePlan, cluster string) []string {
	var what []string
	for _, r := range plan.removals {
		if r.already == "" {
			what = append(what, fmt.Sprintf("machine %s of cluster %s (%s, node %s) is deleted, with its host and what is stored there",
				r.machine.Name, cluster, role(r.machine.Machine), cmp.Or(r.machine.Status.NodeRef.Name, "<none>")))
		}
	}
	for _, s := range plan.scales {
		what = append(what, fmt.Sprintf("%s goes from %d to %d replicas", s.target, s.from, s.to))
	}
	return what
}

// write marks the machines before the replicas are lowered, so that no other goes, and deletes outright after that, so
// that no other comes.
func (o *deleteOptions) write(ctx context.Context, plan deletePlan) error {
	if o.dryRun == dryRunClient {
		return nil
	}
	for _, r := range plan.removals {
		if r.mark {
			if err := markMachine(ctx, o.client, r.machine.Machine, o.dryRun == dryRunServer); err != nil {
				return err
			}
		}
	}
	for _, s := range plan.scales {
		if err := o.lower(ctx, s); err != nil {
			return err
		}
	}
	for _, r := range plan.removals {
		if r.outright {
			if err := deleteMachine(ctx, o.client, r.machine.Machine, o.dryRun == dryRunServer); err != nil {
				return err
			}
		}
	}
	return nil
}

// lower sets replicas and the record in one patch. Every report of a controller changes the resourceVersion that guards
// it; what must not have changed are the replicas and the record.
func (o *deleteOptions) lower(ctx context.Context, s ownerScale) error {
	var opts []client.PatchOption
	if o.dryRun == dryRunServer {
		opts = append(opts, client.DryRunAll)
	}
	key, before := client.ObjectKeyFromObject(s.owner), s.owner.GetAnnotations()[removedAnnotation]
	owner := s.owner
	for {
		patch, err := ownerPatch(owner, s.to, removedAnnotation, &s.record)
		if err != nil {
			return err
		}
		err = o.client.Patch(ctx, o.named(s.target), client.RawPatch(types.MergePatchType, patch), opts...)
		if !apierrors.IsConflict(err) {
			if err != nil {
				return fmt.Errorf("scale %s from %d to %d: %w", s.target, s.from, s.to, err)
			}
			return nil
		}
		owner = s.target.newObject()
		if err := o.client.Get(ctx, key, owner); err != nil {
			return fmt.Errorf("read %s: %w", s.target, err)
		}
		if desired(owner) != s.from || owner.GetAnnotations()[removedAnnotation] != before {
			return fmt.Errorf("%s was scaled by somebody else meanwhile: look at it, and run the command again", s.target)
		}
	}
}

// named returns an empty object of the target's kind that has its name.
func (o *deleteOptions) named(t target) client.Object {
	obj := t.newObject()
	obj.SetNamespace(o.namespace)
	obj.SetName(t.name)
	return obj
}

// ownerPatch sets replicas and one annotation of an owner, unless it has changed since it was read; a nil value removes
// the annotation.
func ownerPatch(owner client.Object, replicas int32, annotation string, value *string) ([]byte, error) {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{
			"resourceVersion": owner.GetResourceVersion(),
			"annotations":     map[string]any{annotation: value},
		},
		"spec": map[string]any{"replicas": replicas},
	})
	if err != nil {
		return nil, fmt.Errorf("encode the patch of %s: %w", owner.GetName(), err)
	}
	return patch, nil
}

// markMachine makes a machine the first to go when its owner has too many.
func markMachine(ctx context.Context, c client.Client, machine *clusterv1.Machine, dryRun bool) error {
	if _, marked := machine.Annotations[clusterv1.DeleteMachineAnnotation]; marked {
		return nil
	}
	var opts []client.PatchOption
	if dryRun {
		opts = append(opts, client.DryRunAll)
	}
	// The uid is a precondition: names of machines are used again.
	patch := fmt.Sprintf(`{"metadata":{"uid":%q,"annotations":{%q:"true"}}}`, machine.UID, clusterv1.DeleteMachineAnnotation)
	marked := &clusterv1.Machine{}
	marked.Namespace, marked.Name = machine.Namespace, machine.Name
	if err := c.Patch(ctx, marked, client.RawPatch(types.MergePatchType, []byte(patch)), opts...); err != nil {
		return fmt.Errorf("mark machine %q to go: %w", machine.Name, err)
	}
	return nil
}

func deleteMachine(ctx context.Context, c client.Client, machine *clusterv1.Machine, dryRun bool) error {
	opts := []client.DeleteOption{client.Preconditions{UID: &machine.UID}}
	if dryRun {
		opts = append(opts, client.DryRunAll)
	}
	gone := &clusterv1.Machine{}
	gone.Namespace, gone.Name = machine.Namespace, machine.Name
	if err := c.Delete(ctx, gone, opts...); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete machine %q: %w", machine.Name, err)
	}
	return nil
}

func (o *deleteOptions) report(plan deletePlan) {
	for _, r := range plan.removals {
		switch {
		case o.output == "name":
			fmt.Fprintln(o.Out, machineResource(r.machine.Name))
		case r.already != "":
			fmt.Fprintf(o.Out, "%s %s\n", machineResource(r.machine.Name), r.already)
		default:
			fmt.Fprintf(o.Out, "%s deleted%s\n", machineResource(r.machine.Name), o.mode())
		}
	}
	if o.output == "name" {
		return
	}
	for _, s := range plan.scales {
		fmt.Fprintf(o.Out, "%s scaled from %d to %d%s\n", s.target.resource(), s.from, s.to, o.mode())
	}
}
