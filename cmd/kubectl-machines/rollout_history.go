package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubectl/pkg/util/templates"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/cli"
	"github.com/millwright-dev/millwright/internal/lifecycle"
)

// changeCauseAnnotation is kubectl's: why a revision was made, in the user's words.
const changeCauseAnnotation = "kubernetes.io/change-cause"

var historyColumns = cli.Columns{
	{Name: "Revision"}, {Name: "Machines"}, {Name: "Version"}, {Name: "Changed"}, {Name: "Age"}, {Name: "Change-Cause"},
	{Name: "Infrastructure", Wide: true}, {Name: "Bootstrap", Wide: true}, {Name: "MachineSet", Wide: true},
}

// rolloutHistoryOptions show the revisions of a deployment.
type rolloutHistoryOptions struct {
	rolloutTarget
	print    *cli.PrintFlags
	revision int64
}

func newRolloutHistoryCommand(o *cli.Options) *cobra.Command {
	history := &rolloutHistoryOptions{rolloutTarget: rolloutTarget{Options: o}, print: cli.NewPrintFlags()}
	cmd := &cobra.Command{
		Use:   "history NAME",
		Short: "Show the revisions of a MachineDeployment",
		Long: templates.LongDesc(`
			Show the revisions of a MachineDeployment, the present one last.

			CHANGED is what differs from the revision before; CHANGE-CAUSE is the annotation
			kubernetes.io/change-cause that the MachineDeployment had. Revisions are MachineSets: -o yaml shows them.`),
		Example: templates.Examples(`
			# Show the revisions
			{{kubectl}} rollout history prod-md-0

			# Show what going back to a revision would change
			{{kubectl}} rollout history prod-md-0 --revision 3`),
		Args:              cli.OneArg("NAME"),
		ValidArgsFunction: o.CompleteFirst(deploymentNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := history.validateArgs(args); err != nil {
				return err
			}
			if err := history.complete(cmd.Context()); err != nil {
				return err
			}
			return history.run(cmd.Context())
		},
	}
	history.print.AddFlags(cmd)
	cmd.Flags().Int64Var(&history.revision, "revision", 0, "Show this revision alone, and how it differs from what is wanted now.")
	return cmd
}

func (o *rolloutHistoryOptions) validateArgs(args []string) error {
	if o.revision < 0 {
		return cli.UsageErrorf("--revision must not be negative, not %d", o.revision)
	}
	if err := o.print.Validate(); err != nil {
		return err
	}
	return o.validateTarget(args[0])
}

func (o *rolloutHistoryOptions) run(ctx context.Context) error {
	sets, err := o.sets(ctx)
	if err != nil {
		return err
	}
	if len(sets) == 0 {
		return fmt.Errorf("%s has no revision yet: its controller has made no MachineSet", o.target)
	}
	rows := history(sets)
	if o.revision > 0 {
		var known []string
		for _, row := range rows {
			if lifecycle.Revision(row.set) == o.revision {
				return o.showOne(row)
			}
			known = append(known, strconv.FormatInt(lifecycle.Revision(row.set), 10))
		}
		return fmt.Errorf("%s has no revision %d: there are %s", o.target, o.revision, strings.Join(known, ", "))
	}
	objects := make([]client.Object, 0, len(rows))
	for _, row := range rows {
		objects = append(objects, row.set)
	}
	return o.print.Print(o.Out, o.client.Scheme(), cli.Result{Objects: objects, Table: func() *metav1.Table { return historyTable(rows, time.Now()) }})
}

// showOne shows one revision, and what going back to it would change.
func (o *rolloutHistoryOptions) showOne(row historyRow) error {
	result := cli.Result{Objects: []client.Object{row.set}, Single: true, Table: func() *metav1.Table { return historyTable([]historyRow{row}, time.Now()) }}
	if err := o.print.Print(o.Out, o.client.Scheme(), result); err != nil {
		return err
	}
	if !o.print.Table() {
		return nil
	}
	differences := lifecycle.TemplateDifferences(o.deployment.Spec.Template, row.set.Spec.Template)
	if len(differences) == 0 {
		fmt.Fprintln(o.ErrOut, "Machines of this revision are what is wanted now")
		return nil
	}
	fmt.Fprintf(o.ErrOut, "Going back to it would change:\n%s\n", indent(differences))
	return nil
}

// historyRow is one revision.
type historyRow struct {
	set *clusterv1.MachineSet
	// changed names what differs from the revision before.
	changed string
}

// history returns the revisions of sets, which are newest first, the oldest first.
func history(sets []*clusterv1.MachineSet) []historyRow {
	var rows []historyRow
	for i := len(sets) - 1; i >= 0; i-- {
		row := historyRow{set: sets[i]}
		if len(rows) > 0 {
			var words []string
			for _, line := range lifecycle.TemplateDifferences(rows[len(rows)-1].set.Spec.Template, sets[i].Spec.Template) {
				words = append(words, changedWord(line))
			}
			row.changed = strings.Join(words, ",")
			if row.changed == "" {
				row.changed = "restart"
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// changedWord is the first word of a difference, which names the field.
func changedWord(line string) string {
	word, _, _ := strings.Cut(line, " ")
	return strings.ToLower(word)
}

func historyTable(rows []historyRow, now time.Time) *metav1.Table {
	table := historyColumns.Table()
	for _, row := range rows {
		spec := row.set.Spec.Template.Spec
		bootstrap := spec.Bootstrap.ConfigRef.Name
		if bootstrap == "" {
			bootstrap = ptr.Deref(spec.Bootstrap.DataSecretName, "")
		}
		cli.AddRow(table, row.set,
			strconv.FormatInt(lifecycle.Revision(row.set), 10), strconv.Itoa(int(ptr.Deref(row.set.Status.Replicas, 0))), spec.Version,
			row.changed, cli.Age(now, row.set.CreationTimestamp.Time), row.set.Annotations[changeCauseAnnotation],
			spec.InfrastructureRef.Name, bootstrap, row.set.Name)
	}
	return table
}
