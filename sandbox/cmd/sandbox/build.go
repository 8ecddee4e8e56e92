package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/millwright-dev/millwright/sandbox/internal/build"
)

func newBuild() *cobra.Command {
	onlyKubeadm := false
	cmd := &cobra.Command{
		Use:   "build [VERSION...]",
		Short: "Build the programs of Kubernetes versions into the cache, and nothing else",
		Long: "Builds etcd, kube-apiserver, kube-controller-manager, kube-scheduler and the guest of each Kubernetes version given " +
			"(default " + build.DefaultVersion + "), where the cache does not hold them, and prints the folder of each.\n\n" +
			"The cache is $MILLWRIGHT_CACHE, or millwright in the user's cache directory.",
		RunE: func(cmd *cobra.Command, versions []string) error {
			if len(versions) == 0 {
				versions = []string{build.DefaultVersion}
			}
			b, err := newBuilder()
			if err != nil {
				return err
			}
			for _, version := range versions {
				if onlyKubeadm {
					path, err := b.Kubeadm(cmd.Context(), version)
					if err != nil {
						return err
					}
					fmt.Fprintln(cmd.OutOrStdout(), path)
					continue
				}
				binaries, err := b.Kubernetes(cmd.Context(), version)
				if err != nil {
					return err
				}
				if _, err := b.Guest(cmd.Context(), version); err != nil {
					return err
				}
				fmt.Fprintln(cmd.OutOrStdout(), binaries.Dir)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&onlyKubeadm, "kubeadm", false, "Build kubeadm instead, which guests do not need, and print its path")
	return cmd
}
