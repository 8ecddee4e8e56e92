package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubectl/pkg/util/templates"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/cli"
	"github.com/millwright-dev/millwright/internal/graph"
)

// getOptions show clusters, or the machines of one.
type getOptions struct {
	*cli.Options
	print *cli.PrintFlags

	cluster       string
	namespace     string
	allNamespaces bool
	selector      string
	watch         bool

	labels labels.Selector
	client client.WithWatch
}

func newGetCommand(o *cli.Options) *cobra.Command {
	get := &getOptions{Options: o, print: cli.NewPrintFlags()}
	cmd := &cobra.Command{
		Use:   "get [CLUSTER]",
		Short: "Show clusters, or the machines of one",
		Long: templates.LongDesc(`
			Show the clusters of the namespace, or the machines of one cluster.

			CONTROL-PLANE and WORKERS are the machines that are ready, of those that are wanted.
			MESSAGE is there when a machine is held up, and says by what.`),
		Example: templates.Examples(`
			# Show the clusters of the current namespace
			{{kubectl}} get

			# Show all clusters that carry a label
			{{kubectl}} get -A -l env=prod

			# Show the machines of a cluster, with more columns
			{{kubectl}} get prod -o wide

			# Print the address of each machine
			{{kubectl}} get prod -o jsonpath='{range .items[*]}{.status.addresses[0].address}{"\n"}{end}'`),
		Args:              cli.AtMostOneArg("CLUSTER"),
		ValidArgsFunction: o.CompleteFirst(clusterNames),
		RunE:              get.run,
	}
	get.addFlags(cmd)
	return cmd
}

// showFleet makes the bare plugin show the clusters, as "get" does.
func showFleet(o *cli.Options, root *cobra.Command) {
	get := &getOptions{Options: o, print: cli.NewPrintFlags()}
	get.addFlags(root)
	root.RunE = get.run
}

func (o *getOptions) addFlags(cmd *cobra.Command) {
	o.print.AddFlags(cmd)
	cmd.Flags().BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "Show the clusters of all namespaces.")
	cmd.Flags().StringVarP(&o.selector, "selector", "l", "", "Only objects with these labels (e.g. -l key1=value1,key2!=value2).")
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "After the list, show each object again when it changes.")
}

func (o *getOptions) run(cmd *cobra.Command, args []string) error {
	if err := o.complete(cmd.Context(), args); err != nil {
		return err
	}
	if o.watch {
		return o.follow(cmd.Context())
	}
	objects, err := o.list(cmd.Context())
	if err != nil {
		return err
	}
	if len(objects) == 0 && o.print.Table() {
		o.sayEmpty()
		return nil
	}
	return o.print.Print(o.Out, o.client.Scheme(), o.result(cmd.Context(), objects))
}

func (o *getOptions) complete(ctx context.Context, args []string) error {
	if err := o.print.Validate(); err != nil {
		return err
	}
	var err error
	if o.labels, err = labels.Parse(o.selector); err != nil {
		return cli.UsageErrorf("--selector: %w", err)
	}
	if len(args) == 1 {
		if o.cluster, err = clusterName(args[0]); err != nil {
			return err
		}
		if o.allNamespaces {
			return cli.UsageErrorf("a cluster is in one namespace: use -n NAMESPACE instead of --all-namespaces")
		}
	}
	if o.watch && !o.print.Table() {
		return cli.UsageErrorf("--watch shows a table: it does not go with --output %s", o.print.Output)
	}
	o.print.WithNamespace = o.allNamespaces
	if o.namespace, err = o.Namespace(); err != nil {
		return err
	}
	if o.allNamespaces {
		o.namespace = metav1.NamespaceAll
	}
	o.client, err = o.ClusterAPI(ctx)
	return err
}

// source is the list that the command shows.
func (o *getOptions) source() graph.Source {
	options := []client.ListOption{client.InNamespace(o.namespace)}
	if o.cluster == "" {
		return graph.Source{List: &clusterv1.ClusterList{}, Options: append(options, client.MatchingLabelsSelector{Selector: o.labels})}
	}
	ofCluster, _ := labels.SelectorFromValidatedSet(labels.Set{clusterv1.ClusterNameLabel: o.cluster}).Requirements()
	return graph.Source{List: &clusterv1.MachineList{}, Options: append(options, client.MatchingLabelsSelector{Selector: o.labels.Add(ofCluster...)})}
}

func (o *getOptions) list(ctx context.Context) ([]client.Object, error) {
	var objects []client.Object
	source := o.source()
	err := graph.Pages(ctx, o.client, source.List, func(page client.ObjectList) error {
		return meta.EachListItem(page, func(item runtime.Object) error {
			objects = append(objects, item.(client.Object))
			return nil
		})
	}, source.Options...)
	if err != nil {
		return nil, err
	}
	// No machines may mean that there is no such cluster.
	if o.cluster != "" && len(objects) == 0 {
		if _, err := getCluster(ctx, o.client, client.ObjectKey{Namespace: o.namespace, Name: o.cluster}); err != nil {
			return nil, err
		}
	}
	return objects, nil
}

func (o *getOptions) sayEmpty() {
	switch {
	case o.cluster != "" && o.selector != "":
		fmt.Fprintf(o.ErrOut, "No machines with labels %s found in cluster %s.\n", o.selector, o.cluster)
	case o.cluster != "":
		fmt.Fprintf(o.ErrOut, "Cluster %s has no machines yet. See why: %s tree %s\n", o.cluster, o.Typed(), o.cluster)
	case o.selector != "":
		fmt.Fprintf(o.ErrOut, "No clusters with labels %s found.\n", o.selector)
	case o.allNamespaces:
		fmt.Fprintf(o.ErrOut, "No clusters found. Apply a Cluster to make one: kubectl apply -f cluster.yaml\n")
	default:
		fmt.Fprintf(o.ErrOut, "No clusters found in namespace %s. See all namespaces with -A, or apply a Cluster to make one: "+
			"kubectl apply -f cluster.yaml\n", o.namespace)
	}
}

func (o *getOptions) result(ctx context.Context, objects []client.Object) cli.Result {
	return cli.Result{Objects: objects, Table: func() *metav1.Table {
		if o.cluster != "" {
			return machineTable(objects, o.watch, time.Now())
		}
		return clusterTable(objects, controlPlaneVersions(ctx, o.client, objects), time.Now())
	}}
}

// follow prints the table, and then the row of each object that changes.
func (o *getOptions) follow(ctx context.Context) error {
	follower := graph.NewFollower(o.client)
	if err := follower.Follow(ctx, o.source()); err != nil {
		return err
	}
	connection := &connection{lost: follower.Lost, now: time.Now}
	shown := map[client.ObjectKey]string{}
	for {
		if text := connection.news(); text != "" {
			fmt.Fprintln(o.ErrOut, text)
		}
		objects, err := follower.Objects()
		if err != nil {
			return err
		}
		changed := slices.DeleteFunc(objects, func(obj client.Object) bool {
			return shown[client.ObjectKeyFromObject(obj)] == obj.GetResourceVersion()
		})
		slices.SortFunc(changed, func(a, b client.Object) int {
			return strings.Compare(client.ObjectKeyFromObject(a).String(), client.ObjectKeyFromObject(b).String())
		})
		for _, obj := range changed {
			shown[client.ObjectKeyFromObject(obj)] = obj.GetResourceVersion()
		}
		if len(changed) > 0 {
			if err := o.print.Print(o.Out, o.client.Scheme(), o.result(ctx, changed)); err != nil {
				return err
			}
		}
		select {
		case <-follower.Changed():
		case <-ctx.Done():
			// A watch has no other end.
			return &cli.Error{Code: cli.ExitInterrupted}
		}
	}
}
