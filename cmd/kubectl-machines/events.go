package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/kubectl/pkg/util/templates"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/cli"
	"github.com/millwright-dev/millwright/internal/graph"
)

// eventsOptions show the events of a cluster or of one machine.
type eventsOptions struct {
	*cli.Options
	print *cli.PrintFlags

	kind, name string
	namespace  string
	client     client.WithWatch
}

// involved is an object that events are about.
type involved struct{ kind, name string }

// eventScope is whose events are shown.
type eventScope struct {
	cluster client.ObjectKey
	// objects are those of the management cluster.
	objects []involved
	// nodes are the Nodes of the workload cluster.
	nodes map[string]bool
}

func newEventsCommand(o *cli.Options) *cobra.Command {
	events := &eventsOptions{Options: o, print: cli.NewPrintFlags()}
	cmd := &cobra.Command{
		Use:   "events CLUSTER|MACHINE",
		Short: "Show what happened to a cluster or a machine, in the order of time",
		Long: templates.LongDesc(`
			Show the events of a machine, of its infrastructure and of its bootstrap config, and those of its node
			in the workload cluster, merged in the order of time. For a cluster, those of all its objects and nodes.

			Kubernetes keeps events for an hour, unless its administrator chose otherwise. A name that is both a
			cluster's and a machine's is the cluster's; machine/NAME and cluster/NAME tell them apart.`),
		Example: templates.Examples(`
			# Show what happened to a machine
			{{kubectl}} events prod-md-0-x7k2p

			# Show what happened in a cluster, with counts and sources
			{{kubectl}} events prod -o wide`),
		Args:              cli.OneArg("CLUSTER or MACHINE"),
		ValidArgsFunction: o.CompleteFirst(clusterNames, machineNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := events.complete(cmd.Context(), args); err != nil {
				return err
			}
			return events.run(cmd.Context())
		},
	}
	events.print.AddFlags(cmd)
	return cmd
}

func (o *eventsOptions) complete(ctx context.Context, args []string) error {
	if err := o.print.Validate(); err != nil {
		return err
	}
	var found bool
	if o.kind, o.name, found = strings.Cut(args[0], "/"); !found {
		o.kind, o.name = "", args[0]
	}
	o.kind, _, _ = strings.Cut(strings.ToLower(o.kind), ".")
	if (o.kind != "" && o.kind != "cluster" && o.kind != "machine") || o.name == "" || strings.Contains(o.name, "/") {
		return cli.UsageErrorf("%q is neither a cluster nor a machine: give a name, cluster/NAME or machine/NAME", args[0])
	}
	var err error
	if o.namespace, err = o.Namespace(); err != nil {
		return err
	}
	o.client, err = o.ClusterAPI(ctx)
	return err
}

func (o *eventsOptions) run(ctx context.Context) error {
	scope, err := o.scope(ctx)
	if err != nil {
		return err
	}
	management, err := o.managementEvents(ctx, scope)
	if err != nil {
		return err
	}
	workload, err := o.workloadEvents(ctx, scope)
	if err != nil {
		// What the management cluster knows is worth showing, all the more when the other does not answer.
		fmt.Fprintf(o.ErrOut, "Warning: no events of nodes: %v\n", err)
	}
	events := mergeEvents(management, workload)
	if len(events) == 0 && o.print.Table() {
		fmt.Fprintf(o.ErrOut, "No events of %s in the time for which they are kept.\n", o.name)
		return nil
	}
	var objects []client.Object
	for i := range events {
		objects = append(objects, &events[i].Event)
	}
	return o.print.Print(o.Out, o.client.Scheme(), cli.Result{Objects: objects, Table: func() *metav1.Table {
		return eventTable(events, time.Now())
	}})
}

// scope finds the cluster or the machine, and what belongs to it.
func (o *eventsOptions) scope(ctx context.Context) (eventScope, error) {
	key := client.ObjectKey{Namespace: o.namespace, Name: o.name}
	if o.kind != "machine" {
		scope, err := o.clusterScope(ctx, key)
		switch {
		case err == nil || !apierrors.IsNotFound(err):
			return scope, err
		case o.kind == "cluster":
			return scope, clusterNotFound(ctx, o.client, key)
		}
	}
	machine, err := getMachine(ctx, o.client, key)
	if err != nil {
		return eventScope{}, err
	}
	return machineScope(machine), nil
}

func (o *eventsOptions) clusterScope(ctx context.Context, cluster client.ObjectKey) (eventScope, error) {
	if err := o.client.Get(ctx, cluster, &clusterv1.Cluster{}); err != nil {
		return eventScope{}, err
	}
	g, err := graph.Load(ctx, o.client, cluster)
	if err != nil {
		return eventScope{}, err
	}
	scope := eventScope{cluster: cluster, nodes: map[string]bool{}}
	for _, obj := range g.Objects {
		scope.objects = append(scope.objects, involved{obj.Kind.Kind, obj.GetName()})
		if machine, ok := obj.Object.(*clusterv1.Machine); ok && machine.Status.NodeRef.Name != "" {
			scope.nodes[machine.Status.NodeRef.Name] = true
		}
	}
	return scope, nil
}

func machineScope(machine *clusterv1.Machine) eventScope {
	scope := eventScope{
		cluster: client.ObjectKey{Namespace: machine.Namespace, Name: machine.Spec.ClusterName},
		objects: []involved{{"Machine", machine.Name}},
		nodes:   map[string]bool{},
	}
	for _, ref := range []clusterv1.ContractVersionedObjectReference{machine.Spec.InfrastructureRef, machine.Spec.Bootstrap.ConfigRef} {
		if ref.Kind != "" {
			scope.objects = append(scope.objects, involved{ref.Kind, ref.Name})
		}
	}
	if machine.Status.NodeRef.Name != "" {
		scope.nodes[machine.Status.NodeRef.Name] = true
	}
	return scope
}

// oneByOne is up to how many objects it pays to ask for the events of each instead of reading those of the namespace.
const oneByOne = 5

func (o *eventsOptions) managementEvents(ctx context.Context, scope eventScope) ([]corev1.Event, error) {
	var out []corev1.Event
	if len(scope.objects) <= oneByOne {
		for _, obj := range scope.objects {
			list := &corev1.EventList{}
			selector := fields.Set{"involvedObject.kind": obj.kind, "involvedObject.name": obj.name}
			if err := o.client.List(ctx, list, client.InNamespace(o.namespace), client.MatchingFieldsSelector{Selector: selector.AsSelector()}); err != nil {
				return nil, fmt.Errorf("list the events of %s %s: %w", obj.kind, obj.name, err)
			}
			out = append(out, list.Items...)
		}
		return out, nil
	}
	wanted := map[involved]bool{}
	for _, obj := range scope.objects {
		wanted[obj] = true
	}
	err := graph.Pages(ctx, o.client, &corev1.EventList{}, func(page client.ObjectList) error {
		for _, e := range page.(*corev1.EventList).Items {
			if wanted[involved{e.InvolvedObject.Kind, e.InvolvedObject.Name}] {
				out = append(out, e)
			}
		}
		return nil
	}, client.InNamespace(o.namespace))
	return out, err
}

// workloadEvents reads the events of Nodes. They are about objects without a namespace, and so in "default".
func (o *eventsOptions) workloadEvents(ctx context.Context, scope eventScope) ([]corev1.Event, error) {
	if len(scope.nodes) == 0 {
		return nil, nil
	}
	workload, err := workloadClient(ctx, o.client, scope.cluster)
	if err != nil {
		return nil, err
	}
	selector := fields.Set{"involvedObject.kind": "Node"}
	if len(scope.nodes) == 1 {
		for name := range scope.nodes {
			selector["involvedObject.name"] = name
		}
	}
	list, err := workload.CoreV1().Events(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{FieldSelector: selector.String()})
	if err != nil {
		return nil, fmt.Errorf("list them in cluster %q: %w", scope.cluster.Name, err)
	}
	var out []corev1.Event
	for _, e := range list.Items {
		if scope.nodes[e.InvolvedObject.Name] {
			out = append(out, e)
		}
	}
	return out, nil
}
