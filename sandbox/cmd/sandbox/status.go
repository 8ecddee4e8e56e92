package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/millwright-dev/millwright/sandbox/internal/state"
)

func newStatus(o *options) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show what runs: programs, virtual machines and their guests",
		Long:  "Shows what runs. Exits with 1 where no sandbox runs.",
		Args:  arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "" && output != "json" {
				return usageError{fmt.Errorf("--output is %q: want json, or leave it out", output)}
			}
			dir, err := o.open()
			if err != nil {
				return err
			}
			s, err := dir.Load()
			if err != nil {
				return err
			}
			sortForPeople(&s)
			if output == "json" {
				enc := json.NewEncoder(cmd.OutOrStdout())
				enc.SetIndent("", "  ")
				err = enc.Encode(s)
			} else {
				printStatus(cmd.OutOrStdout(), s, time.Now())
			}
			if err == nil && !s.Daemon.Alive() {
				err = fmt.Errorf("the sandbox of %s has crashed (its daemon was pid %d): start a new one with `sandbox up`", dir, s.Daemon.PID)
			}
			return err
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "output format: json")
	return cmd
}

func sortForPeople(s *state.State) {
	slices.SortFunc(s.Machines, func(a, b state.Machine) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(s.Endpoints, func(a, b state.Endpoint) int { return cmp.Compare(a.Address, b.Address) })
}

func printStatus(w io.Writer, s state.State, now time.Time) {
	fmt.Fprintf(w, "daemon pid %d, %s, ready: %v\n\n", s.Daemon.PID, s.Block, s.Ready)
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "PROGRAM\tPID\tLISTENS\tUPTIME\tRESTARTS")
	for _, p := range s.Programs {
		pid, uptime := "-", "-"
		if p.Running {
			pid, uptime = fmt.Sprint(p.PID), now.Sub(p.Started).Round(time.Second).String()
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%d\n", p.Name, pid, p.Listen, uptime, p.Restarts)
	}
	fmt.Fprintf(t, "vCenter\t%d\t%s\t\t\n", s.Daemon.PID, s.VCenter)
	t.Flush()
	if len(s.Machines) > 0 {
		fmt.Fprintln(w)
		fmt.Fprintln(t, "MACHINE\tPOWER\tADDRESS\tVERSION\tGUEST\tPID\tMESSAGE")
		for _, m := range s.Machines {
			pid := "-"
			if m.Guest.PID > 0 {
				pid = fmt.Sprint(m.Guest.PID)
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", m.Name, m.Power, dash(m.Address), dash(m.KubernetesVersion), dash(m.Phase), pid, firstLine(m.Message))
		}
		t.Flush()
	}
	if len(s.Endpoints) > 0 {
		fmt.Fprintln(w)
		fmt.Fprintln(t, "VIRTUAL ADDRESS\tHELD BY")
		for _, e := range s.Endpoints {
			fmt.Fprintf(t, "%s\t%s\n", e.Address, strings.Join(e.Backends, ", "))
		}
		t.Flush()
	}
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
