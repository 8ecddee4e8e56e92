package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/kubectl/pkg/util/templates"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/bundle"
	"github.com/millwright-dev/millwright/internal/cli"
)

// showOptions tell what the catalogue knows of an add-on.
type showOptions struct {
	*cli.Options
	print     *cli.PrintFlags
	catalogue catalogueFlags

	name    string
	version string
}

func newShowCommand(o *cli.Options) *cobra.Command {
	show := &showOptions{Options: o, print: cli.NewPrintFlags()}
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show the versions, parameters and images of an add-on",
		Long: templates.LongDesc(`
			Show what the catalogue knows of an add-on: its versions with the Kubernetes versions that they are
			stated for, and the parameters, images and published files of one of them. No cluster is asked.`),
		Example: templates.Examples(`
			# Show what can be set, and to what
			{{kubectl}} show calico

			# Show the images of a certain version
			{{kubectl}} show calico --version 3.31.7 -o jsonpath='{.spec.images}'`),
		Args:              cli.OneArg("NAME"),
		ValidArgsFunction: completeName,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := show.print.Validate(); err != nil {
				return err
			}
			show.name = args[0]
			return show.run(cmd.Context())
		},
	}
	show.print.AddFlags(cmd)
	show.catalogue.addFlags(cmd)
	cmd.Flags().StringVar(&show.version, "version", "", "Version to show; the newest when it is not given.")
	_ = cmd.RegisterFlagCompletionFunc("version", completeVersions)
	return cmd
}

func (o *showOptions) run(ctx context.Context) error {
	addon, err := o.catalogue.find(ctx, o.name)
	if err != nil {
		return err
	}
	version := &addon.Versions[0]
	if o.version != "" {
		if version, err = addon.Version(o.version); err != nil {
			return err
		}
	}
	parameters, err := addon.ParametersOf(version)
	if err != nil {
		return err
	}
	facts, err := addon.FactsOf(version)
	if err != nil {
		return err
	}
	if o.print.Table() {
		return describe(o.Out, addon, version, parameters, facts)
	}
	return o.print.Print(o.Out, cli.NewScheme(), cli.Result{
		Objects: []client.Object{versionObject(addon, version, parameters, facts)}, Single: true,
		Table: func() *metav1.Table { return nil },
	})
}

// describe writes an add-on for a person, as "kubectl describe" writes objects.
func describe(out io.Writer, addon *bundle.Addon, version *bundle.Version, parameters []bundle.Parameter, facts []string) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(cells ...string) { fmt.Fprintln(w, strings.TrimRight(strings.Join(cells, "\t"), "\t")) }
	line("Name:", addon.Name)
	line("Description:", addon.Description)
	line("Category:", addon.Category)
	line("Shown version:", version.Version)
	_ = w.Flush()
	line("Versions:")
	line("  VERSION", "KUBERNETES", "UPGRADES FROM", "IN A CLUSTER'S UPGRADE", "TESTED")
	for _, v := range addon.Versions {
		line("  "+v.Version, v.Kubernetes, orElse(v.UpgradesFrom, "any"), v.Phase, tested(&v))
	}
	_ = w.Flush()
	if len(parameters) > 0 {
		line("Parameters:")
		line("  NAME", "TYPE", "DEFAULT", "ALLOWED", "DESCRIPTION")
		for _, p := range parameters {
			line("  "+p.Name, p.Type, orElse(p.Default, `""`), orElse(p.Limits, "any"), p.Description)
		}
		_ = w.Flush()
	}
	var sources []string
	for _, source := range version.Sources {
		sources = append(sources, source.URL)
	}
	for _, list := range []struct {
		title string
		items []string
	}{
		{"Taken from the cluster", facts}, {"Depends on", version.DependsOn}, {"Images", version.Images}, {"Published files", sources}, {"Never pruned", refNames(version.Retain)},
	} {
		if len(list.items) == 0 {
			continue
		}
		line(list.title + ":")
		for _, item := range list.items {
			line("  " + item)
		}
	}
	return w.Flush()
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

func tested(v *bundle.Version) string {
	if v.Untested {
		return "no"
	}
	return "yes"
}

func refNames(refs []bundle.ObjectRef) []string {
	var names []string
	for _, ref := range refs {
		name := ref.Kind
		if ref.Group != "" {
			name += "." + ref.Group
		}
		names = append(names, strings.TrimSpace(name+" "+strings.Trim(ref.Namespace+"/"+ref.Name, "/")))
	}
	return names
}

// versionObject is a version for -o json and the like.
func versionObject(addon *bundle.Addon, version *bundle.Version, parameters []bundle.Parameter, facts []string) *unstructured.Unstructured {
	var described, sources []any
	for _, p := range parameters {
		described = append(described, map[string]any{
			"name": p.Name, "type": p.Type, "default": p.Default, "allowed": p.Limits, "description": p.Description,
		})
	}
	for _, source := range version.Sources {
		sources = append(sources, map[string]any{"url": source.URL, "sha256": source.SHA256})
	}
	object := entry{addon: addon}.object()
	spec := object.Object["spec"].(map[string]any)
	for field, value := range map[string]any{
		"version": version.Version, "parameters": described, "facts": toAny(facts), "dependsOn": toAny(version.DependsOn),
		"images": toAny(version.Images), "sources": sources, "retain": toAny(refNames(version.Retain)),
	} {
		spec[field] = value
	}
	return object
}
