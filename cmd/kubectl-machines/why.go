package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubectl/pkg/util/templates"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/millwright-dev/millwright/internal/cli"
	"github.com/millwright-dev/millwright/internal/graph/diagnosis"
)

// whyOptions say what is wrong with a cluster, a machine or a deployment, or with all clusters of a namespace.
type whyOptions struct {
	*cli.Options

	output  string
	after   time.Duration
	offline bool

	// kind is empty where the user gave none; name where all clusters are meant.
	kind, name string
	namespace  string
	client     client.WithWatch
}

func newWhyCommand(o *cli.Options) *cobra.Command {
	why := &whyOptions{Options: o}
	cmd := &cobra.Command{
		Use:   "why [CLUSTER|MACHINE|DEPLOYMENT]",
		Short: "Say what is wrong, which trouble comes first, and what to do",
		Long: templates.LongDesc(`
			Say what is wrong with a cluster, a machine or a MachineDeployment: the cause that the others wait for
			first, where it is, since when, what to do, and what it was concluded from. Without a name, of every
			cluster of the namespace.

			Conditions and events of the management cluster are read, and the workload cluster's nodes, pods and
			requests for certificates, where it answers. It works with any provider, whoever reconciles the objects.
			A name that is several objects' is the cluster's first, then the machine's; KIND/NAME tells them apart.

			Exit code 1 means that something is wrong. "Likely" is said of what was concluded from what is missing.`),
		Example: templates.Examples(`
			# What is wrong with the clusters of this namespace?
			{{kubectl}} why

			# Why is this machine not ready?
			{{kubectl}} why prod-md-0-x7k2p

			# For a script: the codes of what is wrong with a cluster
			{{kubectl}} why prod -o json | jq -r '.findings[].code'`),
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: o.CompleteFirst(clusterNames, deploymentNames, machineNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := why.complete(cmd.Context(), args); err != nil {
				return err
			}
			return why.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&why.output, "output", "o", "", "Output format. One of: (json, yaml).")
	flags.DurationVar(&why.after, "after", 3*time.Minute, "How long an ordinary step, such as a node that joins, may take before it is called trouble.")
	flags.BoolVar(&why.offline, "management-only", false, "Ask only the management cluster.")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// whyKinds are the words for what can be asked about.
var whyKinds = map[string]string{
	"cluster": "Cluster", "clusters": "Cluster", "cl": "Cluster",
	"machine": "Machine", "machines": "Machine", "ma": "Machine",
	"machinedeployment": "MachineDeployment", "machinedeployments": "MachineDeployment", "md": "MachineDeployment", "deployment": "MachineDeployment",
}

func (o *whyOptions) complete(ctx context.Context, args []string) error {
	switch {
	case o.output != "" && o.output != "json" && o.output != "yaml":
		return cli.UsageErrorf("--output must be json or yaml, not %q", o.output)
	case o.after < 0:
		return cli.UsageErrorf("--after must not be negative")
	}
	if len(args) == 1 {
		kind, name, found := strings.Cut(args[0], "/")
		if !found {
			kind, name = "", args[0]
		} else {
			word, _, _ := strings.Cut(strings.ToLower(kind), ".")
			if kind = whyKinds[word]; kind == "" {
				return cli.UsageErrorf("%q is no cluster, machine or deployment: give a name, cluster/NAME, machine/NAME or deployment/NAME", args[0])
			}
		}
		if name == "" || strings.Contains(name, "/") {
			return cli.UsageErrorf("%q is no name: give a name, cluster/NAME, machine/NAME or deployment/NAME", args[0])
		}
		o.kind, o.name = kind, name
	}
	var err error
	if o.namespace, err = o.Namespace(); err != nil {
		return err
	}
	o.client, err = o.ClusterAPI(ctx)
	return err
}

// diagnosed is what is wrong with one cluster, as programs read it.
type diagnosed struct {
	Cluster   string              `json:"cluster"`
	Namespace string              `json:"namespace"`
	Findings  []diagnosis.Finding `json:"findings"`

	// about is what was asked about, where that is not the cluster.
	about string
}

func (o *whyOptions) run(ctx context.Context) error {
	subjects, err := o.subjects(ctx)
	if err != nil {
		return err
	}
	wrong := false
	all := make([]diagnosed, 0, len(subjects))
	for _, s := range subjects {
		found, err := o.diagnose(ctx, s)
		if err != nil {
			return err
		}
		wrong = wrong || len(found.Findings) > 0
		all = append(all, found)
	}
	if err := o.print(all); err != nil {
		return err
	}
	if wrong {
		return &cli.Error{Code: cli.ExitFailed}
	}
	return nil
}

// subject is what is asked about: a cluster, or an object of it.
type subject struct {
	cluster client.ObjectKey
	kind    schema.GroupKind
	name    string
}

func (o *whyOptions) diagnose(ctx context.Context, s subject) (diagnosed, error) {
	facts, err := o.facts(ctx, s.cluster)
	if err != nil {
		return diagnosed{}, err
	}
	found := diagnosed{Cluster: s.cluster.Name, Namespace: s.cluster.Namespace, Findings: diagnosis.Diagnose(facts)}
	if s.kind.Kind != "Cluster" {
		obj := facts.Graph.Find(s.kind, s.name)
		if obj == nil {
			return diagnosed{}, fmt.Errorf("%s %q was deleted meanwhile", s.kind.Kind, s.name)
		}
		found.Findings = diagnosis.Concerning(found.Findings, obj)
		found.about = s.kind.Kind + "/" + s.name
	}
	if found.Findings == nil {
		found.Findings = []diagnosis.Finding{}
	}
	return found, nil
}

func (o *whyOptions) print(all []diagnosed) error {
	var data any = all
	if o.name != "" && len(all) == 1 {
		data = all[0]
	}
	switch o.output {
	case "json":
		text, err := json.MarshalIndent(data, "", "  ")
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(o.Out, string(text))
		return err
	case "yaml":
		text, err := yaml.Marshal(data)
		if err != nil {
			return err
		}
		_, err = fmt.Fprint(o.Out, string(text))
		return err
	}
	lines := drawDiagnoses(all, time.Now(), cli.Width(o.Out), paletteFor(o.Out))
	if len(lines) == 0 {
		fmt.Fprintf(o.ErrOut, "No clusters in namespace %s.\n", o.namespace)
		return nil
	}
	_, err := fmt.Fprintln(o.Out, strings.Join(lines, "\n"))
	return err
}

var clusterKind = clusterv1.GroupVersion.WithKind("Cluster").GroupKind()
