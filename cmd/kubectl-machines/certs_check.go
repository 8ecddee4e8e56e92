package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/kubectl/pkg/util/templates"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/millwright-dev/millwright/internal/cli"
)

// certsCheckOptions show when certificates expire.
type certsCheckOptions struct {
	*cli.Options
	output   string
	warnDays int

	cluster client.ObjectKey
	client  client.Client
}

func newCertsCheckCommand(o *cli.Options) *cobra.Command {
	check := &certsCheckOptions{Options: o}
	cmd := &cobra.Command{
		Use:   "check CLUSTER",
		Short: "Show when the certificates of a cluster expire",
		Long: templates.LongDesc(`
			Show when the certificates of a cluster expire, and which authority signed them.

			Authorities, the service account key and the kubeconfig are read from the Secrets of the cluster. What a
			control-plane machine serves with is asked of its API server and etcd, through the cluster's own API
			server; where that does not answer it is what was recorded on the Machine. Certificates of kubelets are
			not shown: kubelets renew them by themselves.

			The exit code is 1 when a certificate has fewer than --warn-days left, or anything else is wrong with one.`),
		Example: templates.Examples(`
			# Show all certificates
			{{kubectl}} certs check prod

			# Fail in a script when one has less than two months left
			{{kubectl}} certs check prod --warn-days 60 -o json`),
		Args:              cli.OneArg("CLUSTER"),
		ValidArgsFunction: o.CompleteFirst(clusterNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := check.validate(); err != nil {
				return err
			}
			if err := check.complete(cmd.Context(), args[0]); err != nil {
				return err
			}
			return check.run(cmd.Context())
		},
	}
	formats := []string{"table", "wide", "json", "yaml"}
	cmd.Flags().StringVarP(&check.output, "output", "o", "", "Output format. One of: (table, wide, json, yaml).")
	cmd.Flags().IntVar(&check.warnDays, "warn-days", 30, "Fail when a certificate has fewer days left; 0 is for expired ones only.")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (o *certsCheckOptions) validate() error {
	switch o.output {
	case "", "table", "wide", "json", "yaml":
	default:
		return cli.UsageErrorf("--output must be table, wide, json or yaml, not %q", o.output)
	}
	if o.warnDays < 0 {
		return cli.UsageErrorf("--warn-days must not be negative, not %d", o.warnDays)
	}
	return nil
}

func (o *certsCheckOptions) complete(ctx context.Context, arg string) error {
	name, err := clusterName(arg)
	if err != nil {
		return err
	}
	namespace, err := o.Namespace()
	if err != nil {
		return err
	}
	o.cluster = client.ObjectKey{Namespace: namespace, Name: name}
	o.client, err = o.ClusterAPI(ctx)
	return err
}

func (o *certsCheckOptions) run(ctx context.Context) error {
	cluster, err := getCluster(ctx, o.client, o.cluster)
	if err != nil {
		return err
	}
	now := time.Now()
	kept, err := readKeptCertificates(ctx, o.client, cluster)
	if err != nil {
		return err
	}
	certificates := keptCertificates(kept, now)
	served, err := o.served(ctx, kept)
	if err != nil {
		return err
	}
	certificates = append(certificates, served...)
	if len(certificates) == 0 {
		return fmt.Errorf("cluster %q has no certificate to look at, neither in Secrets nor on machines: see %s tree %s", cluster.Name, o.Typed(), cluster.Name)
	}
	judged := judgeCertificates(certificates, now, o.warnDays)
	if err := o.print(judged); err != nil {
		return err
	}
	advice := certificateAdvice(judged, cluster)
	for _, line := range advice {
		fmt.Fprintln(o.ErrOut, line)
	}
	if len(advice) > 0 {
		return &cli.Error{Code: cli.ExitFailed}
	}
	return nil
}

// served asks machines for what they serve with. Without control-plane machines it is the endpoint that is asked.
func (o *certsCheckOptions) served(ctx context.Context, kept keptSecrets) ([]certificate, error) {
	machines := &clusterv1.MachineList{}
	if err := o.client.List(ctx, machines, client.InNamespace(o.cluster.Namespace),
		client.MatchingLabels{clusterv1.ClusterNameLabel: o.cluster.Name}, client.HasLabels{clusterv1.MachineControlPlaneLabel}); err != nil {
		return nil, fmt.Errorf("list the machines of cluster %q: %w", o.cluster.Name, err)
	}
	config, err := workloadConfig(ctx, o.client, o.cluster)
	if err != nil && len(machines.Items) == 0 {
		return nil, nil
	}
	if err != nil {
		fmt.Fprintf(o.ErrOut, "Warning: machines cannot be asked, what was recorded of them is shown: %v\n", err)
		return recordedCertificates(machines.Items, err), nil
	}
	witness := certificateWitness{config: config, authorities: kept.authorities()}
	if len(machines.Items) == 0 {
		return witness.endpoint(ctx), nil
	}
	return witness.machines(ctx, machines.Items), nil
}

// certificateData is a certificate in JSON and YAML.
type certificateData struct {
	Name      string     `json:"name"`
	Machine   string     `json:"machine,omitempty"`
	Subject   string     `json:"subject,omitempty"`
	Authority string     `json:"authority,omitempty"`
	Expires   *time.Time `json:"expires,omitempty"`
	DaysLeft  *int       `json:"daysLeft,omitempty"`
	Source    string     `json:"source"`
	Problem   string     `json:"problem,omitempty"`
}

func (o *certsCheckOptions) print(certificates []certificate) error {
	if o.output != "json" && o.output != "yaml" {
		printer := printers.NewTablePrinter(printers.PrintOptions{Wide: o.output == "wide"})
		return printer.PrintObj(certificateTable(certificates), o.Out)
	}
	data := struct {
		Cluster      string            `json:"cluster"`
		WarnDays     int               `json:"warnDays"`
		Certificates []certificateData `json:"certificates"`
	}{Cluster: o.cluster.Name, WarnDays: o.warnDays}
	for _, c := range certificates {
		d := certificateData{Name: c.name, Machine: c.machine, Subject: c.subject, Authority: c.authority, Source: c.source, Problem: c.problem}
		if !c.expires.IsZero() {
			d.Expires, d.DaysLeft = new(c.expires.UTC()), new(c.daysLeft)
		}
		data.Certificates = append(data.Certificates, d)
	}
	text, err := json.MarshalIndent(data, "", "  ")
	if o.output == "yaml" {
		text, err = yaml.Marshal(data)
	}
	if err != nil {
		return fmt.Errorf("encode the certificates: %w", err)
	}
	if o.output == "json" {
		text = append(text, '\n')
	}
	_, err = o.Out.Write(text)
	return err
}
