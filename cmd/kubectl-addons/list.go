package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/kubectl/pkg/util/templates"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/apply"
	"github.com/millwright-dev/millwright/internal/bundle"
	"github.com/millwright-dev/millwright/internal/cli"
)

// listOptions show the catalogue.
type listOptions struct {
	*cli.Options
	print     *cli.PrintFlags
	target    targetFlags
	catalogue catalogueFlags

	kubernetes string
}

func newListCommand(o *cli.Options) *cobra.Command {
	list := &listOptions{Options: o, print: cli.NewPrintFlags()}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Show the catalogue, and which versions fit the cluster",
		Long: templates.LongDesc(`
			Show the add-ons of the catalogue with their versions, newest first.

			FITS is the newest version that is stated for the cluster's Kubernetes version, and INSTALLED
			the version that the cluster has. Both are unknown when no cluster answers. TESTED is no where the
			published files were not at hand for the tests of the release.`),
		Example: templates.Examples(`
			# Show the catalogue for the cluster of the current context
			{{kubectl}} list

			# Show what fits a workload cluster
			{{kubectl}} list --cluster prod

			# Show what fits a Kubernetes version, without a cluster
			{{kubectl}} list --kubernetes-version v1.36.3`),
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := list.print.Validate(); err != nil {
				return err
			}
			if list.kubernetes != "" && list.target.cluster != "" {
				return cli.UsageErrorf("--kubernetes-version asks no cluster: it does not go with --cluster")
			}
			return list.run(cmd.Context())
		},
	}
	list.print.AddFlags(cmd)
	list.target.addFlags(cmd, o)
	list.catalogue.addFlags(cmd)
	cmd.Flags().StringVar(&list.kubernetes, "kubernetes-version", "", "Show what fits this Kubernetes version; no cluster is asked.")
	return cmd
}

// entry is a line of the list.
type entry struct {
	addon *bundle.Addon
	// fits and installed are empty when not known.
	fits, installed string
}

func (o *listOptions) run(ctx context.Context) error {
	catalogue, err := o.catalogue.load(ctx)
	if err != nil {
		return err
	}
	var installed map[string]string
	if o.kubernetes == "" {
		if installed, err = o.ask(ctx); err != nil {
			return err
		}
	}
	var entries []entry
	for _, addon := range catalogue.Addons() {
		e := entry{addon: addon, installed: installed[addon.Name]}
		if e.fits, err = o.fits(addon); err != nil {
			return err
		}
		entries = append(entries, e)
	}
	objects := make([]client.Object, 0, len(entries))
	for _, e := range entries {
		objects = append(objects, e.object())
	}
	return o.print.Print(o.Out, cli.NewScheme(), cli.Result{Objects: objects, Table: func() *metav1.Table { return catalogueTable(entries, installed != nil) }})
}

// ask learns the cluster's version and what is installed there. With no cluster
// named, one that does not answer is only a note: the catalogue is worth showing.
func (o *listOptions) ask(ctx context.Context) (map[string]string, error) {
	target, err := o.target.connect(ctx, o.Options)
	if err != nil {
		if o.target.cluster != "" || ctx.Err() != nil {
			return nil, err
		}
		fmt.Fprintf(o.ErrOut, "note: what fits is not known: %v\n", cause(err))
		return nil, nil
	}
	o.kubernetes = target.version
	records, err := (&apply.Engine{Client: target.client}).Records(ctx)
	if err != nil {
		return nil, err
	}
	installed := map[string]string{}
	for _, record := range records {
		installed[record.Name] = record.Version
	}
	return installed, nil
}

// fits is the newest version stated for the Kubernetes version; "none" when there is none.
func (o *listOptions) fits(addon *bundle.Addon) (string, error) {
	if o.kubernetes == "" {
		return "", nil
	}
	for _, version := range addon.Versions {
		fits, err := version.Fits(o.kubernetes)
		if err != nil {
			return "", cli.UsageErrorf("--kubernetes-version: %w", err)
		}
		if fits {
			return version.Version, nil
		}
	}
	return "none", nil
}

var catalogueColumns = cli.Columns{
	{Name: "Name"}, {Name: "Category"}, {Name: "Versions"}, {Name: "Fits"}, {Name: "Installed"}, {Name: "Tested"},
	{Name: "Kubernetes", Wide: true}, {Name: "Description", Wide: true},
}

func catalogueTable(entries []entry, asked bool) *metav1.Table {
	table := catalogueColumns.Table()
	for _, e := range entries {
		fits, installed := e.fits, e.installed
		if fits == "" {
			fits = "<unknown>"
		}
		if !asked {
			installed = "<unknown>"
		}
		var ranges []string
		for _, version := range e.addon.Versions {
			ranges = append(ranges, version.Kubernetes)
		}
		cli.AddRow(table, e.object(), e.addon.Name, e.addon.Category, strings.Join(e.addon.VersionNames(), ","),
			fits, installed, testedVersions(e.addon), strings.Join(ranges, ", "), e.addon.Description)
	}
	return table
}

// testedVersions tells whether the repository's tests have rendered and applied the versions.
func testedVersions(addon *bundle.Addon) string {
	var names []string
	for i := range addon.Versions {
		if addon.Versions[i].Untested {
			names = append(names, addon.Versions[i].Version)
		}
	}
	switch len(names) {
	case 0:
		return "yes"
	case len(addon.Versions):
		return "no"
	}
	return "not " + strings.Join(names, ",")
}

// object is an entry for -o json and the like: the add-on as its addon.yaml, with a status.
func (e entry) object() *unstructured.Unstructured {
	var versions []any
	for _, version := range e.addon.Versions {
		versions = append(versions, map[string]any{
			"version": version.Version, "kubernetes": version.Kubernetes, "phase": version.Phase, "images": toAny(version.Images), "tested": !version.Untested,
		})
	}
	status := map[string]any{}
	if e.fits != "" {
		status["fits"] = e.fits
	}
	if e.installed != "" {
		status["installed"] = e.installed
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": bundle.APIVersion,
		"kind":       bundle.Kind,
		"metadata":   map[string]any{"name": e.addon.Name},
		"spec": map[string]any{
			"category": e.addon.Category, "description": e.addon.Description, "versions": versions,
		},
		"status": status,
	}}
}

func toAny(list []string) []any {
	values := make([]any, 0, len(list))
	for _, value := range list {
		values = append(values, value)
	}
	return values
}
