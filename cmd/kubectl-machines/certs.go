package main

import (
	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/millwright-dev/millwright/internal/cli"
)

func newCertsCommand(o *cli.Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "certs COMMAND",
		Aliases: []string{"certificates"},
		Short:   "Look after the certificates of a cluster's control plane",
		Long: templates.LongDesc(`
			Look after the certificates of a cluster: its authorities, the kubeconfig of its administrator, and what
			its control-plane machines serve with.`),
		Example: templates.Examples(`
			# Show when the certificates of a cluster expire
			{{kubectl}} certs check prod

			# Give the control plane new ones, by replacing its machines one by one
			{{kubectl}} certs rotate prod`),
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newCertsCheckCommand(o), newCertsRotateCommand(o))
	return cmd
}
