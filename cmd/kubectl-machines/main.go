package main

import (
	"os"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/millwright-dev/millwright/internal/cli"
)

func main() {
	os.Exit(cli.Main(newRoot(genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr})))
}

func newRoot(streams genericiooptions.IOStreams) *cobra.Command {
	return cli.NewRoot(cli.Plugin{
		Name:  "machines",
		Short: "Look after clusters and their machines",
		Long: `
			Look after the clusters that a management cluster manages through Cluster API, and their machines.

			Without a command, the clusters of the namespace are shown.`,
		Examples: `
			# Show the clusters of the current namespace
			{{kubectl}}

			# Show what a cluster is made of, and what is not ready
			{{kubectl}} tree prod

			# Have six machines, and wait until they are there
			{{kubectl}} scale prod-md-0 --replicas 6 --wait`,
		Root: showFleet,
		Groups: func(o *cli.Options) templates.CommandGroups {
			return templates.CommandGroups{
				{Message: "See:", Commands: []*cobra.Command{newGetCommand(o), newTreeCommand(o), newWhyCommand(o), newEventsCommand(o)}},
				{Message: "Change:", Commands: []*cobra.Command{
					newScaleCommand(o),
					newReplaceCommand(o),
					newDeleteCommand(o),
					newRolloutCommand(o),
					newUpgradeCommand(o),
				}},
				{Message: "Nodes of machines:", Commands: []*cobra.Command{newDrainCommand(o), newCordonCommand(o), newUncordonCommand(o)}},
				{Message: "Control planes:", Commands: []*cobra.Command{newCertsCommand(o), newEtcdCommand(o)}},
				{Message: "Use:", Commands: []*cobra.Command{newKubeconfigCommand(o)}},
			}
		},
	}, streams)
}
