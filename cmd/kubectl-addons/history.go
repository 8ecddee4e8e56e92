package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/kubectl/pkg/util/templates"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/apply"
	"github.com/millwright-dev/millwright/internal/bundle"
	"github.com/millwright-dev/millwright/internal/cli"
)

// historyOptions show the revisions of an add-on.
type historyOptions struct {
	*cli.Options
	print  *cli.PrintFlags
	target targetFlags

	name string
}

func newHistoryCommand(o *cli.Options) *cobra.Command {
	history := &historyOptions{Options: o, print: cli.NewPrintFlags()}
	cmd := &cobra.Command{
		Use:   "history NAME",
		Short: "Show the versions that an add-on had on a cluster",
		Long: templates.LongDesc(`
			Show the last ten versions and parameters that an add-on had on a cluster, the oldest first, and what
			each install did. An install that only put objects right is no revision.`),
		Example: templates.Examples(`
			# Show what versions of Calico the cluster of the current context had
			{{kubectl}} history calico

			# Show the parameters of each
			{{kubectl}} history calico -o wide`),
		Args:              cli.OneArg("NAME"),
		ValidArgsFunction: completeName,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := history.print.Validate(); err != nil {
				return err
			}
			history.name = args[0]
			return history.run(cmd.Context())
		},
	}
	history.print.AddFlags(cmd)
	history.target.addFlags(cmd, o)
	return cmd
}

func (o *historyOptions) run(ctx context.Context) error {
	target, err := o.target.connect(ctx, o.Options)
	if err != nil {
		return err
	}
	record, err := (&apply.Engine{Client: target.client}).Record(ctx, o.name)
	if err != nil {
		return err
	}
	if len(record.History) == 0 && o.print.Table() {
		fmt.Fprintf(o.ErrOut, "No install of %s on %s came to its end yet.\n", o.name, target.name)
		return nil
	}
	var objects []client.Object
	for _, revision := range record.History {
		object, err := revisionObject(o.name, revision)
		if err != nil {
			return err
		}
		objects = append(objects, object)
	}
	return o.print.Print(o.Out, cli.NewScheme(), cli.Result{Objects: objects, Table: func() *metav1.Table {
		table := historyColumns.Table()
		for i, revision := range record.History {
			cli.AddRow(table, objects[i], strconv.Itoa(revision.Number), revision.Version,
				revision.Time.Format(time.RFC3339), revision.Changes(), parameterList(revision.Parameters))
		}
		return table
	}})
}

var historyColumns = cli.Columns{{Name: "Revision"}, {Name: "Version"}, {Name: "Time"}, {Name: "Changes"}, {Name: "Parameters", Wide: true}}

// parameterList writes parameters as they are given on the command line.
func parameterList(parameters map[string]any) string {
	var pairs []string
	for _, name := range sortedNames(parameters) {
		pairs = append(pairs, fmt.Sprintf("%s=%v", name, parameters[name]))
	}
	return strings.Join(pairs, ",")
}

// revisionObject is a revision for -o json and the like.
func revisionObject(name string, revision apply.Revision) (client.Object, error) {
	content, err := json.Marshal(revision)
	if err != nil {
		return nil, fmt.Errorf("revision %d of %s: %w", revision.Number, name, err)
	}
	var spec map[string]any
	if err := json.Unmarshal(content, &spec); err != nil {
		return nil, fmt.Errorf("revision %d of %s: %w", revision.Number, name, err)
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": bundle.APIVersion,
		"kind":       "AddonRevision",
		"metadata":   map[string]any{"name": fmt.Sprintf("%s-%d", name, revision.Number)},
		"spec":       spec,
	}}, nil
}
