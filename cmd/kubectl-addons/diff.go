package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/kubectl/pkg/util/templates"
	"sigs.k8s.io/yaml"

	"github.com/millwright-dev/millwright/internal/apply"
	"github.com/millwright-dev/millwright/internal/cli"
)

// Exit codes of diff beyond 0, as diff(1) and kubectl have them.
const (
	exitDiffers    = 1
	exitDiffFailed = 3
)

// diffOptions show what an install would change.
type diffOptions struct {
	installOptions
}

func newDiffCommand(o *cli.Options) *cobra.Command {
	diff := &diffOptions{installOptions{Options: o}}
	cmd := &cobra.Command{
		Use:   "diff [NAME...]",
		Short: "Show what an install would change on a cluster",
		Long: templates.LongDesc(`
			Show what the live objects of add-ons would become, as the cluster's API server tells it. Without a
			name all installed add-ons are compared, each in its recorded version with its recorded parameters;
			--version and --set compare with another one. Values of Secrets are masked.

			Exit code 0: nothing differs; 1: something does; more: the comparison failed.`),
		Example: templates.Examples(`
			# Has somebody changed an object of an add-on?
			{{kubectl}} diff --cluster prod

			# What would a newer Calico change?
			{{kubectl}} diff calico --version 3.32.1`),
		ValidArgsFunction: completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			diff.dryRun = dryRunServer
			// What would be taken over is shown, not refused.
			diff.forceConflicts = true
			differs, err := diff.run(cmd.Context(), args)
			switch {
			case err != nil && cli.ExitCode(err) == cli.ExitFailed:
				return &cli.Error{Code: exitDiffFailed, Err: err}
			case err != nil:
				return err
			case differs:
				return &cli.Error{Code: exitDiffers}
			}
			return nil
		},
	}
	diff.target.addFlags(cmd, o)
	diff.bundle.addFlags(cmd)
	diff.facts.addFlags(cmd)
	diff.addTakeFromFlag(cmd)
	return cmd
}

func (o *diffOptions) run(ctx context.Context, names []string) (differs bool, err error) {
	if err := o.complete(ctx, names); err != nil {
		return false, err
	}
	target, err := o.target.connect(ctx, o.Options)
	if err != nil {
		return false, err
	}
	engine := o.engine(target)
	if len(names) == 0 {
		catalogue, err := o.bundle.load(ctx)
		if err != nil {
			return false, err
		}
		if err := o.everything(ctx, engine, catalogue); err != nil {
			return false, err
		}
	}
	if _, err := o.asRecorded(ctx, engine); err != nil {
		return false, err
	}
	sets, err := o.renderAll(ctx, engine, target)
	if err != nil {
		return false, err
	}
	colour := printers.AllowsColorOutput(o.Out)
	for _, set := range sets {
		plan, err := o.plan(ctx, engine, target, set)
		if err != nil {
			return false, err
		}
		changed, err := writeDiff(o.Out, plan, colour)
		if err != nil {
			return false, err
		}
		differs = differs || changed
	}
	return differs, nil
}

// writeDiff writes what a plan changes as a unified diff, and tells whether that is anything.
func writeDiff(out io.Writer, plan *apply.Plan, colour bool) (differs bool, err error) {
	for _, change := range plan.Changes {
		if change.Action == apply.ActionUnchanged {
			continue
		}
		before, after := comparable(change.Before()), comparable(change.After())
		mask(before, after)
		text, err := unified(change.ID, plan.Set.Name+" "+plan.Set.Version, before, after)
		if err != nil {
			return false, err
		}
		if text == "" {
			continue
		}
		differs = true
		if change.Action == apply.ActionRecreate {
			text = fmt.Sprintf("# %s is deleted and made anew\n%s", change.ID.Full(), text)
		}
		if colour {
			text = coloured(text)
		}
		if _, err := io.WriteString(out, text); err != nil {
			return false, err
		}
	}
	for _, removal := range plan.Removals {
		if removal.Action == apply.ActionPrune {
			differs = true
			fmt.Fprintf(out, "# %s is pruned\n", removal.ID.Full())
		}
	}
	return differs, nil
}

// comparable is an object without what the server or time changes; nil stays nil.
func comparable(object *unstructured.Unstructured) *unstructured.Unstructured {
	if object == nil {
		return nil
	}
	object = object.DeepCopy()
	delete(object.Object, "status")
	for _, field := range []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	return object
}

// mask hides the values of a Secret, but not that one changes.
func mask(before, after *unstructured.Unstructured) {
	if after.GetKind() != "Secret" || after.GroupVersionKind().Group != "" {
		return
	}
	values := func(object *unstructured.Unstructured) map[string]any {
		if object == nil {
			return nil
		}
		data, _ := object.Object["data"].(map[string]any)
		return data
	}
	was, becomes := values(before), values(after)
	for key, value := range becomes {
		old, there := was[key]
		switch {
		case there && old == value:
			was[key], becomes[key] = "***", "***"
		case there:
			was[key], becomes[key] = "*** (before)", "*** (after)"
		default:
			becomes[key] = "***"
		}
	}
	for key := range was {
		if _, stays := becomes[key]; !stays {
			was[key] = "***"
		}
	}
}

func unified(id apply.ID, version string, before, after *unstructured.Unstructured) (string, error) {
	var texts [2]string
	for i, object := range []*unstructured.Unstructured{before, after} {
		if object == nil {
			continue
		}
		content, err := yaml.Marshal(object.Object)
		if err != nil {
			return "", fmt.Errorf("print %s: %w", id.Full(), err)
		}
		texts[i] = string(content)
	}
	return udiff.Unified("live "+id.Full(), version+" "+id.Full(), texts[0], texts[1]), nil
}

// coloured paints the lines of a unified diff in the colours of ECMA-48.
func coloured(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		code := ""
		switch {
		case strings.HasPrefix(line, "---"), strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "#"):
			code = "1"
		case strings.HasPrefix(line, "-"):
			code = "31"
		case strings.HasPrefix(line, "+"):
			code = "32"
		case strings.HasPrefix(line, "@@"):
			code = "36"
		}
		if code == "" {
			b.WriteString(line)
			continue
		}
		fmt.Fprintf(&b, "\x1b[%sm%s\x1b[0m\n", code, strings.TrimSuffix(line, "\n"))
	}
	return b.String()
}
