package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/millwright-dev/millwright/sandbox/internal/address"
)

func newAddress(o *options) *cobra.Command {
	return &cobra.Command{
		Use:     "address",
		Short:   "Hand out a free control-plane endpoint address, for one more cluster",
		Example: "  export CONTROL_PLANE_ENDPOINT_IP=$(bin/sandbox address)",
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := o.open()
			if err != nil {
				return err
			}
			s, err := dir.Load()
			if err != nil {
				return err
			}
			block, err := address.ParseBlock(s.Block)
			if err != nil {
				return fmt.Errorf("the sandbox of %s has no addresses yet: wait until `sandbox up` is done: %w", dir, err)
			}
			next, err := address.TakeEndpoint(cmd.Context(), dir.Endpoints(), block)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), next)
			return err
		},
	}
}
