package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubectl/pkg/util/templates"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/bundle"
	"github.com/millwright-dev/millwright/internal/cli"
)

// searchOptions look for add-ons in the catalogue.
type searchOptions struct {
	*cli.Options
	print     *cli.PrintFlags
	catalogue catalogueFlags

	words []string
}

func newSearchCommand(o *cli.Options) *cobra.Command {
	search := &searchOptions{Options: o, print: cli.NewPrintFlags()}
	cmd := &cobra.Command{
		Use:   "search WORD...",
		Short: "Look for add-ons in the catalogue",
		Long: templates.LongDesc(`
			Show the add-ons that have all the words in their name, category, description, images or
			parameters. No cluster is asked.`),
		Example: templates.Examples(`
			# What can be a pod network?
			{{kubectl}} search cni

			# What brings an image of this registry?
			{{kubectl}} search quay.io`),
		Args: cli.AtLeastOneArg("WORD"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := search.print.Validate(); err != nil {
				return err
			}
			search.words = args
			return search.run(cmd.Context())
		},
	}
	search.print.AddFlags(cmd)
	search.catalogue.addFlags(cmd)
	return cmd
}

func (o *searchOptions) run(ctx context.Context) error {
	catalogue, err := o.catalogue.load(ctx)
	if err != nil {
		return err
	}
	var found []entry
	var objects []client.Object
	for _, addon := range catalogue.Addons() {
		if mentions(addon, o.words) {
			e := entry{addon: addon}
			found, objects = append(found, e), append(objects, e.object())
		}
	}
	if len(found) == 0 && o.print.Table() {
		fmt.Fprintf(o.ErrOut, "No add-on of the catalogue has %s: see %s list.\n", strings.Join(o.words, " "), o.Typed())
		return nil
	}
	return o.print.Print(o.Out, cli.NewScheme(), cli.Result{Objects: objects, Table: func() *metav1.Table {
		table := foundColumns.Table()
		for _, e := range found {
			cli.AddRow(table, e.object(), e.addon.Name, e.addon.Category, strings.Join(e.addon.VersionNames(), ","), e.addon.Description)
		}
		return table
	}})
}

var foundColumns = cli.Columns{{Name: "Name"}, {Name: "Category"}, {Name: "Versions"}, {Name: "Description"}}

// mentions tells whether an add-on has all words somewhere, in upper or lower case.
func mentions(addon *bundle.Addon, words []string) bool {
	texts := []string{addon.Name, addon.Category, addon.Description}
	for _, version := range addon.Versions {
		texts = append(texts, version.Images...)
	}
	for _, parameter := range addon.Parameters.Describe() {
		texts = append(texts, parameter.Name, parameter.Description)
	}
	all := strings.ToLower(strings.Join(texts, "\n"))
	return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(all, strings.ToLower(word)) })
}
