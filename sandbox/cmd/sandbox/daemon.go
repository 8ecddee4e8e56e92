package main

import (
	"bytes"
	"log"
	"os"

	"github.com/spf13/cobra"

	"github.com/millwright-dev/millwright/sandbox/internal/daemon"
)

// noOperator as the operator's path runs none.
const noOperator = "none"

func newDaemon(shared *options) *cobra.Command {
	o := &upOptions{options: shared}
	cmd := &cobra.Command{
		Use:    "daemon",
		Short:  "Run the sandbox in the foreground; `up` starts this",
		Hidden: true,
		Args:   arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			log.SetOutput(quiet{})
			dir, err := o.open()
			if err != nil {
				return err
			}
			builder, err := newBuilder()
			if err != nil {
				return err
			}
			d := daemon.Options{
				Dir: dir, Builder: builder, Manifests: o.manifests, Operator: o.operator, Guest: o.guest, BuiltGuest: o.builtGuest,
				Instant: o.guests == guestsInstant, Audit: o.audit,
			}
			if d.Manifests == "" {
				d.Manifests = builder.Source.Manifests()
			}
			switch d.Operator {
			case "":
				d.Operator = builder.Source.Bin("operator")
			case noOperator:
				d.Operator = ""
			}
			return daemon.Run(cmd.Context(), d)
		},
	}
	o.addFlags(cmd)
	cmd.Flags().StringVar(&o.builtGuest, "built-guest", "", "guest of the default version that was built just now")
	return cmd
}

// quiet drops the simulator's remarks about clients that first try whether
// the system trusts its certificate: every one of ours does.
type quiet struct{}

func (quiet) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("TLS handshake error")) {
		return len(line), nil
	}
	return os.Stderr.Write(line)
}
