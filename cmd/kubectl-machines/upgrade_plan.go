package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/millwright-dev/millwright/addons"
	addonsv1 "github.com/millwright-dev/millwright/api/addons/v1alpha1"
	lifecyclev1 "github.com/millwright-dev/millwright/api/lifecycle/v1alpha1"
	"github.com/millwright-dev/millwright/internal/bundle"
	"github.com/millwright-dev/millwright/internal/cli"
	"github.com/millwright-dev/millwright/internal/contract"
	"github.com/millwright-dev/millwright/internal/lifecycle"
	"github.com/millwright-dev/millwright/internal/lifecycle/upgrade"
	"github.com/millwright-dev/millwright/internal/preflight"
)

var (
	stepColumns    = cli.Columns{{Name: "Leg"}, {Name: "Step"}, {Name: "Name"}, {Name: "From"}, {Name: "To"}, {Name: "Machines"}, {Name: "Why", Wide: true}}
	findingColumns = cli.Columns{{Name: "Severity"}, {Name: "Check"}, {Name: "Object"}, {Name: "Message"}}
)

// planData is a plan in JSON and YAML.
type planData struct {
	Cluster string         `json:"cluster"`
	Target  string         `json:"target"`
	Steps   []upgrade.Step `json:"steps,omitempty"`
	// EstimateSeconds is how long it will take by the cluster's own history; absent without one.
	EstimateSeconds int64             `json:"estimateSeconds,omitempty"`
	Blockers        []upgrade.Finding `json:"blockers"`
	Warnings        []upgrade.Finding `json:"warnings"`
	Forced          []upgrade.Finding `json:"forced,omitempty"`
}

// showPlan plans as the operator does, from the same objects, and shows it. Whether an image exists only the operator can
// ask; of minors between it takes the versions of --via.
func (o *upgradeOptions) showPlan(ctx context.Context) error {
	data, err := o.makePlan(ctx)
	if err != nil {
		return err
	}
	if o.check {
		data.Steps, data.EstimateSeconds = nil, 0
	}
	if o.output != "" {
		err = printData(o.Out, o.output, data)
	} else {
		err = o.printPlan(data)
	}
	if err == nil && len(data.Blockers) > 0 {
		return &cli.Error{Code: cli.ExitFailed}
	}
	return err
}

func (o *upgradeOptions) makePlan(ctx context.Context) (planData, error) {
	data := planData{Cluster: o.cluster.Name, Target: o.to, Blockers: []upgrade.Finding{}, Warnings: []upgrade.Finding{}}
	target, err := lifecycle.ParseVersion(o.to)
	if err != nil {
		return data, err
	}
	objects, err := o.objects(ctx)
	if err != nil {
		return data, err
	}
	facts := upgrade.Facts{Objects: objects, Now: time.Now(), Target: target}
	if err := o.addFacts(ctx, &facts); err != nil {
		return data, err
	}
	observed, err := facts.Observe(upgrade.Selection{Only: o.workersOnly, ControlPlaneStays: len(o.workersOnly) > 0, WorkersStay: o.controlPlane})
	if err != nil {
		return data, err
	}
	if observed.Addons, err = o.addons(ctx, &facts); err != nil {
		return data, err
	}
	observed.Images = []*semver.Version{target, observed.ControlPlane.Newest}
	for _, text := range o.via {
		if version, err := lifecycle.ParseVersion(text); err == nil {
			observed.Images = append(observed.Images, version)
		}
	}
	strategy := upgrade.SeldomWorkers
	if o.everyMinor {
		strategy = upgrade.EveryMinorWorkers
	}
	plan := upgrade.New(observed, upgrade.Options{Target: target, Workers: strategy, Force: o.force})
	blockers, warnings := upgrade.Preflight(facts)
	blockers, forced := upgrade.Forced(blockers, o.force)
	data.Steps = plan.Steps
	var machines int32
	for _, step := range plan.Steps {
		machines += step.Machines
	}
	data.EstimateSeconds = int64(upgrade.Estimate(upgrade.ReadHistory(o.cluster.Annotations[lifecyclev1.HistoryAnnotation]), machines).Seconds())
	data.Blockers = append(append(data.Blockers, plan.Blockers...), blockers...)
	data.Warnings = append(append(data.Warnings, plan.Warnings...), warnings...)
	data.Forced = append(plan.Forced, forced...)
	return data, nil
}

// objects reads the cluster's objects, of whatever provider.
func (o *upgradeOptions) objects(ctx context.Context) (upgrade.Objects, error) {
	objects := upgrade.Objects{Cluster: o.cluster}
	if ref := o.cluster.Spec.ControlPlaneRef; ref.IsDefined() {
		resolver := contract.Resolver{Client: o.client}
		controlPlane, err := resolver.Get(ctx, o.cluster.Namespace, ref)
		if err != nil {
			return objects, err
		}
		objects.ControlPlane = controlPlane
	}
	of := []client.ListOption{client.InNamespace(o.cluster.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: o.cluster.Name}}
	deployments, machines := &clusterv1.MachineDeploymentList{}, &clusterv1.MachineList{}
	if err := o.client.List(ctx, deployments, of...); err != nil {
		return objects, fmt.Errorf("list the MachineDeployments of cluster %q: %w", o.cluster.Name, err)
	}
	if err := o.client.List(ctx, machines, of...); err != nil {
		return objects, fmt.Errorf("list the Machines of cluster %q: %w", o.cluster.Name, err)
	}
	for i := range deployments.Items {
		objects.Deployments = append(objects.Deployments, &deployments.Items[i])
	}
	for i := range machines.Items {
		objects.Machines = append(objects.Machines, &machines.Items[i])
	}
	return objects, nil
}

// addons reads what the cluster has of add-ons, none where the management cluster does not know them.
func (o *upgradeOptions) addons(ctx context.Context, facts *upgrade.Facts) ([]upgrade.Addon, error) {
	list := &addonsv1.AddonReleaseList{}
	if err := o.client.List(ctx, list, client.InNamespace(o.cluster.Namespace)); err != nil {
		if meta.IsNoMatchError(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("list the AddonReleases of cluster %q: %w", o.cluster.Name, err)
	}
	releases := preflight.OfCluster(list, o.cluster.Name)
	facts.UnreadyAddons = preflight.Unready(releases)
	catalogue, err := loadCatalogue()
	if err != nil {
		return nil, err
	}
	return preflight.Addons(releases, catalogue, false), nil
}

// loadCatalogue reads the catalogue that the operator has too, unless the variable MILLWRIGHT_CATALOGUE names another.
func loadCatalogue() (*bundle.Catalogue, error) {
	if from := os.Getenv("MILLWRIGHT_CATALOGUE"); from != "" {
		return bundle.Open(from)
	}
	return bundle.Load(addons.Files)
}

// addFacts asks the workload cluster; one that does not answer is a finding and no error.
func (o *upgradeOptions) addFacts(ctx context.Context, facts *upgrade.Facts) error {
	key := client.ObjectKeyFromObject(o.cluster)
	var err error
	if facts.Authorities, err = preflight.Authorities(ctx, o.client, key); err != nil {
		return err
	}
	workload, err := workloadClient(ctx, o.client, key)
	if err == nil {
		facts.Workload, err = preflight.Ask(ctx, workload)
	}
	if err == nil && facts.ControlPlane == nil {
		info, versionErr := workload.Discovery().ServerVersion()
		if err = versionErr; err == nil {
			facts.ServerVersion = info.GitVersion
		}
	}
	if err != nil {
		facts.Workload, facts.Unreachable = nil, err.Error()
	}
	return nil
}

func (o *upgradeOptions) printPlan(data planData) error {
	printer := printers.NewTablePrinter(printers.PrintOptions{})
	if len(data.Steps) > 0 {
		table := stepColumns.Table()
		for _, step := range data.Steps {
			machines := ""
			if step.Machines > 0 {
				machines = strconv.Itoa(int(step.Machines))
			}
			cli.AddRow(table, o.cluster, strconv.Itoa(step.Leg), string(step.Kind), step.Name, step.From, step.To, machines, step.Reason)
		}
		if err := printer.PrintObj(table, o.Out); err != nil {
			return err
		}
	}
	if data.EstimateSeconds > 0 {
		fmt.Fprintf(o.Out, "it will take about %s, by the upgrades that this cluster had\n", time.Duration(data.EstimateSeconds)*time.Second)
	}
	findings := findingTable(o.cluster, map[string][]upgrade.Finding{"Blocker": data.Blockers, "Forced": data.Forced, "Warning": data.Warnings})
	switch {
	case len(findings.Rows) > 0:
		if len(data.Steps) > 0 {
			fmt.Fprintln(o.Out)
		}
		return printers.NewTablePrinter(printers.PrintOptions{}).PrintObj(findings, o.Out)
	case len(data.Steps) == 0 && o.plan:
		fmt.Fprintf(o.Out, "cluster %q is %s already: there is nothing to do\n", o.cluster.Name, o.to)
	case o.check:
		fmt.Fprintf(o.Out, "nothing stands in the way of an upgrade of cluster %q to %s\n", o.cluster.Name, o.to)
	}
	return nil
}

func findingTable(of client.Object, found map[string][]upgrade.Finding) *metav1.Table {
	table := findingColumns.Table()
	for _, severity := range []string{"Blocker", "Forced", "Warning"} {
		for _, f := range found[severity] {
			cli.AddRow(table, of, severity, f.Check, f.Object, oneLine(f.Message))
		}
	}
	return table
}

// printData writes v as JSON or YAML.
func printData(out io.Writer, format string, v any) error {
	encode := func() ([]byte, error) { return yaml.Marshal(v) }
	if format == "json" {
		encode = func() ([]byte, error) {
			text, err := json.MarshalIndent(v, "", "  ")
			return append(text, '\n'), err
		}
	}
	text, err := encode()
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	_, err = out.Write(text)
	return err
}
