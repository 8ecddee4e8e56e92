package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/kubectl/pkg/util/templates"
	"sigs.k8s.io/yaml"

	"github.com/millwright-dev/millwright/internal/cli"
	"github.com/millwright-dev/millwright/internal/etcd"
)

var memberColumns = cli.Columns{
	{Name: "Member"}, {Name: "Endpoint"}, {Name: "Size"}, {Name: "In-Use"}, {Name: "Leader"}, {Name: "Raft-Term"},
	{Name: "Errors"}, {Name: "Machine", Wide: true}, {Name: "Id", Wide: true}, {Name: "Version", Wide: true}, {Name: "Revision", Wide: true},
}

// etcdStatusOptions show the members of an etcd.
type etcdStatusOptions struct {
	etcdTarget
	output string
}

func newEtcdStatusCommand(o *cli.Options) *cobra.Command {
	status := &etcdStatusOptions{etcdTarget: etcdTarget{Options: o}}
	cmd := &cobra.Command{
		Use:   "status CLUSTER",
		Short: "Show the etcd members of a cluster",
		Long: templates.LongDesc(`
			Show the etcd members of a cluster, as each of them tells of itself.

			SIZE is that of the database, IN-USE what of it holds data: "etcd defrag" gives the rest back. The exit
			code is 1 when a member is not well.`),
		Example: templates.Examples(`
			# Show the members
			{{kubectl}} etcd status prod

			# Show them with machine, id, version and revision
			{{kubectl}} etcd status prod -o wide`),
		Args:              cli.OneArg("CLUSTER"),
		ValidArgsFunction: o.CompleteFirst(clusterNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch status.output {
			case "", "table", "wide", "json", "yaml":
			default:
				return cli.UsageErrorf("--output must be table, wide, json or yaml, not %q", status.output)
			}
			if err := status.complete(cmd.Context(), args[0]); err != nil {
				return err
			}
			return status.run(cmd.Context())
		},
	}
	formats := []string{"table", "wide", "json", "yaml"}
	cmd.Flags().StringVarP(&status.output, "output", "o", "", "Output format. One of: (table, wide, json, yaml).")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (o *etcdStatusOptions) run(ctx context.Context) error {
	members, err := o.members(ctx)
	if err != nil {
		return err
	}
	if err := o.print(members); err != nil {
		return err
	}
	for _, m := range members {
		if m.err != nil || len(m.report.Errors) > 0 || m.report.Leader == 0 {
			return &cli.Error{Code: cli.ExitFailed}
		}
	}
	return nil
}

func (o *etcdStatusOptions) print(members []etcdMember) error {
	switch o.output {
	case "json", "yaml":
		return o.printData(members)
	}
	printer := printers.NewTablePrinter(printers.PrintOptions{Wide: o.output == "wide"})
	return printer.PrintObj(memberTable(members), o.Out)
}

// memberData is a member in JSON and YAML.
type memberData struct {
	Member     string   `json:"member"`
	Machine    string   `json:"machine"`
	Endpoint   string   `json:"endpoint"`
	ID         string   `json:"id,omitempty"`
	Version    string   `json:"version,omitempty"`
	SizeBytes  int64    `json:"sizeBytes,omitempty"`
	InUseBytes int64    `json:"inUseBytes,omitempty"`
	Leader     bool     `json:"leader"`
	Learner    bool     `json:"learner"`
	RaftTerm   uint64   `json:"raftTerm,omitempty"`
	Revision   uint64   `json:"revision,omitempty"`
	Errors     []string `json:"errors,omitempty"`
}

func (o *etcdStatusOptions) printData(members []etcdMember) error {
	data := struct {
		Cluster string       `json:"cluster"`
		Members []memberData `json:"members"`
	}{Cluster: o.cluster.Name}
	for _, m := range members {
		d := memberData{
			Member: m.node, Machine: m.machine.Name, Endpoint: memberEndpoint(m), Version: m.report.Version,
			SizeBytes: m.report.Size, InUseBytes: m.report.InUse, Leader: m.leads(), Learner: m.report.Learner,
			RaftTerm: m.report.Term, Revision: m.report.Revision, Errors: m.report.Errors,
		}
		if m.err != nil {
			d.Errors = []string{m.err.Error()}
		} else {
			d.ID = strconv.FormatUint(m.report.Member, 16)
		}
		data.Members = append(data.Members, d)
	}
	encode := func(v any) ([]byte, error) { return json.MarshalIndent(v, "", "  ") }
	if o.output == "yaml" {
		encode = func(v any) ([]byte, error) { return yaml.Marshal(v) }
	}
	text, err := encode(data)
	if err != nil {
		return fmt.Errorf("encode the status: %w", err)
	}
	if o.output == "json" {
		text = append(text, '\n')
	}
	_, err = o.Out.Write(text)
	return err
}

func memberTable(members []etcdMember) *metav1.Table {
	table := memberColumns.Table()
	for _, m := range members {
		if m.err != nil {
			cli.AddRow(table, m.machine, m.node, memberEndpoint(m), "?", "?", "?", "?", oneLine(m.err.Error()), m.machine.Name, "", "", "")
			continue
		}
		cli.AddRow(table, m.machine, m.node, memberEndpoint(m),
			bytesText(m.report.Size), bytesText(m.report.InUse), leaderWord(m), strconv.FormatUint(m.report.Term, 10),
			strings.Join(m.report.Errors, "; "), m.machine.Name, strconv.FormatUint(m.report.Member, 16), m.report.Version,
			strconv.FormatUint(m.report.Revision, 10))
	}
	return table
}

func leaderWord(m etcdMember) string {
	switch {
	case m.leads():
		return "true"
	case m.report.Learner:
		return "learner"
	}
	return "false"
}

// memberEndpoint is where the member serves its clients, inside the cluster's network.
func memberEndpoint(m etcdMember) string {
	host := address(m.machine)
	if host == "" {
		return ""
	}
	return "https://" + net.JoinHostPort(host, strconv.Itoa(etcd.Port))
}
