package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/util/templates"
	"sigs.k8s.io/yaml"

	"github.com/millwright-dev/millwright/internal/bundle"
	"github.com/millwright-dev/millwright/internal/cli"
)

// renderOptions print the objects of an add-on.
type renderOptions struct {
	*cli.Options
	target targetFlags
	bundle bundleFlags
	facts  factFlags

	addon *bundle.Addon
}

func newRenderCommand(o *cli.Options) *cobra.Command {
	render := &renderOptions{Options: o}
	cmd := &cobra.Command{
		Use:   "render NAME",
		Short: "Print the objects of an add-on",
		Long: templates.LongDesc(`
			Print the objects of an add-on as YAML, as "{{kubectl}} install" would apply them.

			The facts of the cluster (its version, pod CIDR and so on) are asked of the cluster. With
			--kubernetes-version no cluster is asked: what the add-on needs beyond that is given with flags.`),
		Example: templates.Examples(`
			# Print CoreDNS for the cluster of the current context
			{{kubectl}} render coredns

			# Print Calico without a cluster
			{{kubectl}} render calico --kubernetes-version v1.36.3 --pod-cidr 10.244.0.0/16`),
		Args:              cli.OneArg("NAME"),
		ValidArgsFunction: completeName,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := render.complete(cmd.Context(), args); err != nil {
				return err
			}
			return render.run(cmd.Context())
		},
	}
	render.target.addFlags(cmd, o)
	render.bundle.addFlags(cmd)
	render.facts.addFlags(cmd)
	return cmd
}

func (o *renderOptions) complete(ctx context.Context, args []string) error {
	var err error
	if o.addon, err = o.bundle.find(ctx, args[0]); err != nil {
		return err
	}
	if err := o.bundle.complete(o.Options, args); err != nil {
		return err
	}
	return o.facts.complete()
}

func (o *renderOptions) run(ctx context.Context) error {
	facts := bundle.Facts{}
	if o.facts.facts.KubernetesVersion == "" || o.target.cluster != "" {
		target, err := o.target.connect(ctx, o.Options)
		if err != nil {
			return err
		}
		if facts, err = target.place().Facts(ctx); err != nil {
			return err
		}
	}
	rendered, err := o.bundle.render(ctx, o.Options, request{o.addon, o.bundle.version, o.bundle.values, o.bundle.custom}, o.facts.over(facts))
	if err != nil {
		return err
	}
	for _, object := range rendered.objects {
		content, err := yaml.Marshal(object.Object)
		if err != nil {
			return fmt.Errorf("print %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		if _, err := fmt.Fprintf(o.Out, "---\n%s", content); err != nil {
			return err
		}
	}
	return nil
}

// readInput reads a file, or the standard input for "-".
func readInput(o *cli.Options, name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(o.In)
	}
	return os.ReadFile(name)
}
