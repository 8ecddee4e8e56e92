package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/Masterminds/semver/v3"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/kubectl/pkg/util/templates"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/apply"
	"github.com/millwright-dev/millwright/internal/bundle"
	"github.com/millwright-dev/millwright/internal/cli"
)

// askedAtOnce is how many clusters are asked at the same time.
const askedAtOnce = 16

// outdatedOptions compare what clusters have with what the catalogue has.
type outdatedOptions struct {
	*cli.Options
	print     *cli.PrintFlags
	target    targetFlags
	catalogue catalogueFlags

	allNamespaces bool
	here          bool
}

func newOutdatedCommand(o *cli.Options) *cobra.Command {
	outdated := &outdatedOptions{Options: o, print: cli.NewPrintFlags()}
	cmd := &cobra.Command{
		Use:   "outdated",
		Short: "Show which add-ons of the fleet have newer versions",
		Long: templates.LongDesc(`
			Show the add-ons of all workload clusters of the namespace: what runs, what an upgrade would bring,
			and what the next minor version of Kubernetes would need.

			UPGRADE is the newest version that is stated for the cluster's Kubernetes version and in reach.
			NEXT is what the next minor version takes: "as it is", the version to go to first, or "none" where the
			catalogue states none. With --here the cluster of the current context is asked instead.

			Clusters that do not answer are named; the exit code is then 1.`),
		Example: templates.Examples(`
			# What would upgrading the fleet's add-ons bring?
			{{kubectl}} outdated -A

			# What keeps a cluster from its next version of Kubernetes?
			{{kubectl}} outdated --cluster prod`),
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := outdated.print.Validate(); err != nil {
				return err
			}
			if outdated.here && (outdated.target.cluster != "" || outdated.allNamespaces) {
				return cli.UsageErrorf("--here is one cluster: it does not go with --cluster or --all-namespaces")
			}
			if outdated.target.cluster != "" && outdated.allNamespaces {
				return cli.UsageErrorf("a cluster is in one namespace: use -n NAMESPACE instead of --all-namespaces")
			}
			return outdated.run(cmd.Context())
		},
	}
	outdated.print.AddFlags(cmd)
	outdated.target.addFlags(cmd, o)
	outdated.catalogue.addFlags(cmd)
	cmd.Flags().BoolVarP(&outdated.allNamespaces, "all-namespaces", "A", false, "Ask the clusters of all namespaces.")
	cmd.Flags().BoolVar(&outdated.here, "here", false, "Ask the cluster of the current context, not those that it manages.")
	return cmd
}

// fleetRow is one add-on of one cluster.
type fleetRow struct {
	namespace, cluster, kubernetes string
	addon, installed               string
	// upgrade is the version that an upgrade brings; empty when it stays.
	upgrade string
	// next is what the next minor version of Kubernetes needs, which is called nextKubernetes.
	next, nextKubernetes string
}

func (o *outdatedOptions) run(ctx context.Context) error {
	catalogue, err := o.catalogue.load(ctx)
	if err != nil {
		return err
	}
	rows, failed, err := o.ask(ctx, catalogue)
	if err != nil {
		return err
	}
	if len(rows) == 0 && o.print.Table() {
		fmt.Fprintln(o.ErrOut, "No add-ons are installed.")
	} else {
		var objects []client.Object
		for _, row := range rows {
			objects = append(objects, row.object())
		}
		o.print.WithNamespace = o.allNamespaces
		err = o.print.Print(o.Out, cli.NewScheme(), cli.Result{Objects: objects, Table: func() *metav1.Table {
			table := fleetColumns.Table()
			for i, row := range rows {
				cli.AddRow(table, objects[i], row.cluster, row.kubernetes, row.addon, row.installed, orElse(row.upgrade, "no"), row.nextKubernetes+": "+row.next)
			}
			return table
		}})
	}
	if err == nil && failed > 0 {
		err = fmt.Errorf("%d clusters could not be asked", failed)
	}
	return err
}

var fleetColumns = cli.Columns{{Name: "Cluster"}, {Name: "Kubernetes"}, {Name: "Add-on"}, {Name: "Installed"}, {Name: "Upgrade"}, {Name: "Next"}}

// ask asks every cluster; those that do not answer are told and counted.
func (o *outdatedOptions) ask(ctx context.Context, catalogue *bundle.Catalogue) (rows []fleetRow, failed int, err error) {
	if o.here || o.target.cluster != "" {
		target, err := o.target.connect(ctx, o.Options)
		if err != nil {
			return nil, 0, err
		}
		rows, err = rowsOf(ctx, target, catalogue)
		return rows, 0, err
	}
	clusters, management, err := o.clusters(ctx)
	if err != nil {
		return nil, 0, err
	}
	answers, failures := make([][]fleetRow, len(clusters)), make([]error, len(clusters))
	group := errgroup.Group{}
	group.SetLimit(askedAtOnce)
	for i := range clusters {
		group.Go(func() error {
			target, err := connectCluster(ctx, o.Options, management, &clusters[i])
			if err == nil {
				answers[i], err = rowsOf(ctx, target, catalogue)
			}
			failures[i] = err
			return nil
		})
	}
	_ = group.Wait()
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	for i := range clusters {
		if failures[i] != nil {
			failed++
			fmt.Fprintf(o.ErrOut, "warning: %v\n", failures[i])
		}
		rows = append(rows, answers[i]...)
	}
	return rows, failed, nil
}

func (o *outdatedOptions) clusters(ctx context.Context) ([]clusterv1.Cluster, client.Client, error) {
	management, err := o.ClusterAPI(ctx)
	if err != nil {
		return nil, nil, err
	}
	namespace := ""
	if !o.allNamespaces {
		if namespace, err = o.Namespace(); err != nil {
			return nil, nil, err
		}
	}
	var list clusterv1.ClusterList
	if err := management.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, nil, fmt.Errorf("list clusters: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b clusterv1.Cluster) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return list.Items, management, nil
}

func rowsOf(ctx context.Context, target *target, catalogue *bundle.Catalogue) ([]fleetRow, error) {
	records, err := (&apply.Engine{Client: target.client}).Records(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", target.name, err)
	}
	next, err := nextMinor(target.version)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", target.name, err)
	}
	var rows []fleetRow
	for _, record := range records {
		row := fleetRow{cluster: target.name, kubernetes: target.version, addon: record.Name, installed: record.Version, nextKubernetes: next.minor}
		if target.cluster != nil {
			row.namespace, row.cluster = target.cluster.Namespace, target.cluster.Name
		}
		if row.upgrade, row.next, err = compareVersions(catalogue, record, target.version, next.version); err != nil {
			return nil, fmt.Errorf("%s: %w", target.name, err)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// minorVersion is a minor version of Kubernetes, and its first release.
type minorVersion struct{ minor, version string }

func nextMinor(kubernetes string) (minorVersion, error) {
	version, err := semver.NewVersion(kubernetes)
	if err != nil {
		return minorVersion{}, fmt.Errorf("Kubernetes version %q: %w", kubernetes, err)
	}
	minor := fmt.Sprintf("v%d.%d", version.Major(), version.Minor()+1)
	return minorVersion{minor: minor, version: minor + ".0"}, nil
}

// compareVersions tells what an upgrade brings, and what the next Kubernetes version needs.
func compareVersions(catalogue *bundle.Catalogue, record *apply.Parent, kubernetes, next string) (upgrade, needs string, err error) {
	addon, err := catalogue.Addon(record.Name)
	var unknown *bundle.UnknownError
	if errors.As(err, &unknown) {
		return "unknown", "unknown", nil
	}
	if err != nil {
		return "", "", err
	}
	if version, _, err := bundle.Next(addon, record.Version, kubernetes); err != nil {
		return "", "", err
	} else if version != nil {
		upgrade = version.Version
	}
	if installed, err := addon.Version(record.Version); err == nil {
		if fits, err := installed.Fits(next); err != nil || fits {
			return upgrade, "as it is", err
		}
	}
	resolution, err := bundle.Resolve(addon, autoVersion, next)
	if err != nil {
		return "", "", err
	}
	if resolution.Warning != "" {
		return upgrade, "none", nil
	}
	return upgrade, resolution.Version.Version, nil
}

// object is a row for -o json and the like.
func (r fleetRow) object() *unstructured.Unstructured {
	metadata := map[string]any{"name": r.cluster + "-" + r.addon}
	if r.namespace != "" {
		metadata["namespace"] = r.namespace
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": bundle.APIVersion, "kind": "OutdatedAddon", "metadata": metadata,
		"spec": map[string]any{"cluster": r.cluster, "kubernetes": r.kubernetes, "addon": r.addon, "version": r.installed},
		"status": map[string]any{"upgrade": r.upgrade, "next": map[string]any{
			"kubernetes": r.nextKubernetes, "version": r.next,
		}},
	}}
}
