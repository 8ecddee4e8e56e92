package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/kubectl/pkg/util/templates"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/addon"
	"github.com/millwright-dev/millwright/internal/apply"
	"github.com/millwright-dev/millwright/internal/cli"
)

// statusOptions show the add-ons of a cluster, or the objects of one.
type statusOptions struct {
	*cli.Options
	print     *cli.PrintFlags
	target    targetFlags
	catalogue catalogueFlags

	name    string
	watch   bool
	until   string
	timeout time.Duration
}

// untilHealthy ends a watch when all is applied and healthy.
const untilHealthy = "healthy"

func newStatusCommand(o *cli.Options) *cobra.Command {
	status := &statusOptions{Options: o, print: cli.NewPrintFlags()}
	cmd := &cobra.Command{
		Use:   "status [NAME]",
		Short: "Show the add-ons of a cluster, or the objects of one",
		Long: templates.LongDesc(`
			Show the add-ons that this tool put on a cluster, or the objects of one.

			HEALTHY counts objects: healthy of all. DRIFTED counts those that are gone, or of which somebody
			else took over a field: another install puts them right. STATE is Applying where an install did
			not come to its end.

			With --watch it is shown anew whenever something changes: on a terminal as a table, elsewhere one
			line a change.`),
		Example: templates.Examples(`
			# Show the add-ons of the cluster of the current context
			{{kubectl}} status

			# Show the objects of an add-on on a workload cluster
			{{kubectl}} status calico --cluster prod

			# Wait until all add-ons are healthy
			{{kubectl}} status --cluster prod --watch --until healthy --timeout 10m`),
		Args:              cli.AtMostOneArg("NAME"),
		ValidArgsFunction: completeName,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := status.print.Validate(); err != nil {
				return err
			}
			if err := status.validate(); err != nil {
				return err
			}
			if len(args) == 1 {
				status.name = args[0]
			}
			return status.run(cmd.Context())
		},
	}
	status.print.AddFlags(cmd)
	status.target.addFlags(cmd, o)
	status.catalogue.addFlags(cmd)
	cmd.Flags().BoolVarP(&status.watch, "watch", "w", false, "Show it anew whenever something changes.")
	cmd.Flags().StringVar(&status.until, "until", "", "End the watch when all is applied and healthy. Must be \"healthy\".")
	cmd.Flags().DurationVar(&status.timeout, "timeout", 0, "How long to watch at most; zero watches for ever.")
	_ = cmd.RegisterFlagCompletionFunc("until", cobra.FixedCompletions([]string{untilHealthy}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (o *statusOptions) validate() error {
	switch {
	case o.until != "" && o.until != untilHealthy:
		return cli.UsageErrorf("--until %q: want healthy", o.until)
	case !o.watch && (o.until != "" || o.timeout != 0):
		return cli.UsageErrorf("--until and --timeout go with --watch")
	case o.timeout < 0:
		return cli.UsageErrorf("--timeout must not be negative")
	case o.watch && !o.print.Table():
		return cli.UsageErrorf("--watch shows a table: it does not go with -o %s", o.print.Output)
	}
	return nil
}

func (o *statusOptions) run(ctx context.Context) error {
	target, err := o.target.connect(ctx, o.Options)
	if err != nil {
		return err
	}
	engine := &apply.Engine{Client: target.client}
	if o.watch {
		return o.follow(ctx, target, engine)
	}
	if o.name != "" {
		return o.showOne(ctx, engine)
	}
	sets, err := o.sets(ctx, engine)
	if err != nil {
		return err
	}
	if len(sets) == 0 && o.print.Table() {
		fmt.Fprintf(o.ErrOut, "No add-ons on %s.\n", target.name)
		return nil
	}
	var objects []client.Object
	for _, set := range sets {
		objects = append(objects, installedObject(set))
	}
	return o.print.Print(o.Out, cli.NewScheme(), cli.Result{Objects: objects, Table: func() *metav1.Table { return setsTable(sets) }})
}

func (o *statusOptions) showOne(ctx context.Context, engine *apply.Engine) error {
	record, err := engine.Record(ctx, o.name)
	if err != nil {
		return err
	}
	installed, err := o.inspect(ctx, engine, record)
	if err != nil {
		return err
	}
	return o.print.Print(o.Out, cli.NewScheme(), cli.Result{
		Objects: []client.Object{installedObject(installed)}, Single: true,
		Table: func() *metav1.Table { return objectsTable(installed) },
	})
}

// inspect judges the objects of a set, by the checks of its version too where the catalogue has it.
func (o *statusOptions) inspect(ctx context.Context, engine *apply.Engine, record *apply.Parent) (*apply.Installed, error) {
	engine.Check = nil
	if entry, err := o.catalogue.find(ctx, record.Name); err == nil {
		if version, err := entry.Version(record.Version); err == nil {
			engine.Check = addon.Check(version)
		}
	}
	return engine.Inspect(ctx, record)
}

var (
	setColumns    = cli.Columns{{Name: "Name"}, {Name: "Version"}, {Name: "State"}, {Name: "Healthy"}, {Name: "Drifted"}, {Name: "Retained", Wide: true}}
	objectColumns = cli.Columns{{Name: "Object"}, {Name: "In"}, {Name: "Health"}, {Name: "Drift"}, {Name: "Message", Wide: true}}
)

func setsTable(sets []*apply.Installed) *metav1.Table {
	table := setColumns.Table()
	for _, set := range sets {
		cli.AddRow(table, installedObject(set), set.Name, set.Version, string(set.State),
			fmt.Sprintf("%d/%d", set.Healthy(), len(set.Objects)), strconv.Itoa(set.Drifted()), strconv.Itoa(len(set.Retained)))
	}
	return table
}

// objectsTable shows each object of a set, and what stays in the cluster though it left the set.
func objectsTable(set *apply.Installed) *metav1.Table {
	table := objectColumns.Table()
	parent := installedObject(set)
	for _, object := range set.Objects {
		drift := "no"
		if object.Drifted {
			drift = "yes"
		}
		cli.AddRow(table, parent, object.ID.String(), object.ID.Namespace, string(object.Status), drift, object.Message)
	}
	for _, member := range set.Retained {
		cli.AddRow(table, parent, member.String(), member.Namespace, "Retained", "", "left the add-on and stays in the cluster")
	}
	return table
}

// installedObject is a set for -o json and the like.
func installedObject(set *apply.Installed) *unstructured.Unstructured {
	var objects []any
	for _, object := range set.Objects {
		objects = append(objects, map[string]any{
			"group": object.ID.Group, "kind": object.ID.Kind, "namespace": object.ID.Namespace, "name": object.ID.Name,
			"health": string(object.Status), "message": object.Message, "drifted": object.Drifted,
		})
	}
	var retained []any
	for _, member := range set.Retained {
		retained = append(retained, map[string]any{
			"group": member.Group, "kind": member.Kind, "namespace": member.Namespace, "name": member.Name,
		})
	}
	parameters := set.Parameters
	if parameters == nil {
		parameters = map[string]any{}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "bundle.millwright.dev/v1alpha1",
		"kind":       "InstalledAddon",
		"metadata":   map[string]any{"name": set.Name},
		"spec":       map[string]any{"version": set.Version, "parameters": parameters},
		"status": map[string]any{
			"state": string(set.State), "healthy": int64(set.Healthy()), "drifted": int64(set.Drifted()),
			"objects": objects, "retained": retained,
		},
	}}
}
