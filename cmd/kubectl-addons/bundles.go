package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/millwright-dev/millwright/internal/bundle"
	"github.com/millwright-dev/millwright/internal/cli"
)

// autoVersion stands for the newest version that is stated for the cluster.
const autoVersion = "auto"

// bundleFlags choose versions and parameters of add-ons, and where they come from.
type bundleFlags struct {
	catalogueFlags
	version    string
	set        []string
	valuesFile string
	customFile string
	registry   string

	values map[string]any
	custom bundle.Customization
}

// request is an add-on that is wanted, in a version and with parameters.
type request struct {
	addon   *bundle.Addon
	version string
	values  map[string]any
	custom  bundle.Customization
}

func (f *bundleFlags) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.version, "version", autoVersion, "Version of the add-on; auto is the newest that is stated for the cluster's Kubernetes version.")
	_ = cmd.RegisterFlagCompletionFunc("version", completeVersions)
	f.addParameterFlags(cmd)
	f.catalogueFlags.addFlags(cmd)
	f.addMirrorFlag(cmd)
}

func (f *bundleFlags) addParameterFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVar(&f.set, "set", nil, "Set a parameter (NAME=VALUE); can be repeated, and wins over --values.")
	flags.StringVar(&f.customFile, "customize", "", "YAML file of patches, images and a registry to lay over the add-on; - is the standard input.")
	flags.StringVar(&f.registry, "registry", "", "Take every image from this registry, HOST or HOST/PATH, instead of its own.")
	flags.StringVarP(&f.valuesFile, "values", "f", "", "YAML file of parameters; - is the standard input.")
	_ = cmd.RegisterFlagCompletionFunc("set", completeParameters)
}

// complete reads the parameters. Several add-ons share no version and no parameters.
func (f *bundleFlags) complete(o *cli.Options, names []string) error {
	if len(names) > 1 && (f.version != autoVersion && f.version != "" || len(f.set) > 0 || f.valuesFile != "" || f.customFile != "") {
		return cli.UsageErrorf("--version, --set, --values and --customize belong to one add-on: install %s one by one", strings.Join(names, ", "))
	}
	f.values = map[string]any{}
	if f.valuesFile != "" {
		content, err := readInput(o, f.valuesFile)
		if err != nil {
			return fmt.Errorf("read parameters: %w", err)
		}
		if err := yaml.UnmarshalStrict(content, &f.values); err != nil {
			return fmt.Errorf("parameters in %s: %w", f.valuesFile, err)
		}
	}
	for _, pair := range f.set {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return cli.UsageErrorf("--set %q: want NAME=VALUE", pair)
		}
		f.values[name] = value
	}
	return f.completeCustomization(o)
}

func (f *bundleFlags) completeCustomization(o *cli.Options) error {
	if f.customFile != "" {
		content, err := readInput(o, f.customFile)
		if err != nil {
			return fmt.Errorf("read the customization: %w", err)
		}
		if f.custom, err = bundle.ParseCustomization(f.customFile, content); err != nil {
			return err
		}
	}
	if f.registry != "" {
		f.custom.Registry = f.registry
	}
	return nil
}

// recordedCustomization is that of an installed add-on.
func recordedCustomization(name, text string) (bundle.Customization, error) {
	custom, err := bundle.ParseCustomization("the record of "+name, []byte(text))
	if err != nil {
		return custom, fmt.Errorf("%w: install it again with --customize", err)
	}
	return custom, nil
}

// rendered is an add-on ready to be shown or applied.
type rendered struct {
	*bundle.Resolution
	input   bundle.Input
	objects []*unstructured.Unstructured
}

// render resolves, fetches and renders one add-on. Warnings go to stderr.
func (f *catalogueFlags) render(ctx context.Context, o *cli.Options, wanted request, facts bundle.Facts) (*rendered, error) {
	resolution, err := bundle.Resolve(wanted.addon, wanted.version, facts.KubernetesVersion)
	if err != nil {
		return nil, err
	}
	if resolution.Warning != "" {
		fmt.Fprintln(o.ErrOut, "warning: "+resolution.Warning)
	}
	in := bundle.Input{Addon: wanted.addon, Version: resolution.Version, Facts: facts, Values: wanted.values, Custom: wanted.custom}
	// Before anything is fetched: a mistyped parameter must not cost a download.
	if err := in.Check(); err != nil {
		return nil, explainFact(err)
	}
	if in.Sources, err = f.fetcher().Fetch(ctx, resolution.Version); err != nil {
		return nil, err
	}
	objects, err := bundle.Render(in)
	if err != nil {
		return nil, err
	}
	return &rendered{Resolution: resolution, input: in, objects: objects}, nil
}
