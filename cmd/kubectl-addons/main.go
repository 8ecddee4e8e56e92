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
		Name:  "addons",
		Short: "Put add-ons on clusters, at the version that fits",
		Long: `
			Put add-ons (network, DNS, proxy, metrics) on a cluster, at the version that fits its
			Kubernetes version.

			Without --cluster the cluster is that of the current context. With --cluster NAME the current
			context is a management cluster, and the add-ons go to the workload cluster of that name,
			through its kubeconfig Secret.`,
		Examples: `
			# Show the catalogue, and the versions that fit the cluster of the current context
			{{kubectl}} list

			# Put a pod network on a workload cluster, and wait until it is healthy
			{{kubectl}} install calico --cluster prod --wait

			# Show how the add-ons of that cluster are
			{{kubectl}} status --cluster prod`,
		Groups: func(o *cli.Options) templates.CommandGroups {
			return templates.CommandGroups{
				{Message: "See:", Commands: []*cobra.Command{
					newListCommand(o), newSearchCommand(o), newShowCommand(o), newStatusCommand(o), newHistoryCommand(o),
					newOutdatedCommand(o), newDiffCommand(o), newVerifyCommand(o), newRenderCommand(o),
				}},
				{Message: "Change:", Commands: []*cobra.Command{
					newInstallCommand(o), newUpgradeCommand(o), newRollbackCommand(o), newUninstallCommand(o), newAdoptCommand(o),
				}},
				{Message: "Bundles:", Commands: []*cobra.Command{newMirrorCommand(o)}},
			}
		},
	}, streams)
}
