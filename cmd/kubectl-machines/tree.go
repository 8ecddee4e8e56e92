package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/kubectl/pkg/util/templates"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/millwright-dev/millwright/internal/cli"
	"github.com/millwright-dev/millwright/internal/graph"
)

// untilReady is the only state that --until knows.
const untilReady = "ready"

// treeOptions show a cluster as a tree, once or until it is ready.
type treeOptions struct {
	*cli.Options

	output  string
	show    string
	watch   bool
	until   string
	timeout time.Duration

	cluster client.ObjectKey
	client  client.WithWatch
}

func newTreeCommand(o *cli.Options) *cobra.Command {
	tree := &treeOptions{Options: o}
	cmd := &cobra.Command{
		Use:   "tree CLUSTER",
		Short: "Show a cluster with all that belongs to it, and what is not ready",
		Long: templates.LongDesc(`
			Show a cluster as a tree: infrastructure, control plane and workers, since when each is as it is,
			and the message of what is not ready. Equal machines are drawn as one line.

			With --watch the tree is drawn anew as it changes; off a terminal it is one line a change. When the
			server stops answering the view says so, and goes on once it answers again.`),
		Example: templates.Examples(`
			# Show a cluster
			{{kubectl}} tree prod

			# Show every object behind every machine
			{{kubectl}} tree prod --show all

			# Watch a new cluster until it is ready, 20 minutes at most
			{{kubectl}} tree prod --watch --until ready --timeout 20m`),
		Args:              cli.OneArg("CLUSTER"),
		ValidArgsFunction: o.CompleteFirst(clusterNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := tree.validate(); err != nil {
				return err
			}
			if err := tree.complete(cmd.Context(), args); err != nil {
				return err
			}
			if tree.watch {
				return tree.follow(cmd.Context())
			}
			return tree.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&tree.output, "output", "o", "", "Output format. One of: (json, yaml).")
	flags.StringVar(&tree.show, "show", "problems", "How much to show: problems groups equal machines and opens those that are not ready; all shows every object.")
	flags.BoolVarP(&tree.watch, "watch", "w", false, "Follow the cluster as it changes.")
	flags.StringVar(&tree.until, "until", "", "With --watch, end when the cluster is: ready.")
	flags.DurationVar(&tree.timeout, "timeout", 0, "With --watch, how long to follow; 0 is for ever.")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("show", cobra.FixedCompletions([]string{"problems", "all"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("until", cobra.FixedCompletions([]string{untilReady}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (o *treeOptions) validate() error {
	switch {
	case o.output != "" && o.output != "json" && o.output != "yaml":
		return cli.UsageErrorf("--output must be json or yaml, not %q", o.output)
	case o.show != "problems" && o.show != "all":
		return cli.UsageErrorf("--show must be problems or all, not %q", o.show)
	case o.until != "" && o.until != untilReady:
		return cli.UsageErrorf("--until must be %s, not %q", untilReady, o.until)
	case o.until != "" && !o.watch, o.timeout != 0 && !o.watch:
		return cli.UsageErrorf("--until and --timeout need --watch")
	case o.timeout < 0:
		return cli.UsageErrorf("--timeout must not be negative")
	case o.watch && o.output != "":
		return cli.UsageErrorf("--watch does not go with --output %s", o.output)
	}
	return nil
}

func (o *treeOptions) complete(ctx context.Context, args []string) error {
	name, err := clusterName(args[0])
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

func (o *treeOptions) run(ctx context.Context) error {
	g, err := graph.Load(ctx, o.client, o.cluster)
	if apierrors.IsNotFound(err) {
		return clusterNotFound(ctx, o.client, o.cluster)
	}
	if err != nil {
		return err
	}
	root := g.Tree(graph.TreeOptions{All: o.show == "all"})
	switch o.output {
	case "json":
		text, err := json.MarshalIndent(root, "", "  ")
		if err != nil {
			return fmt.Errorf("encode the tree: %w", err)
		}
		fmt.Fprintf(o.Out, "%s\n", text)
	case "yaml":
		text, err := yaml.Marshal(root)
		if err != nil {
			return fmt.Errorf("encode the tree: %w", err)
		}
		fmt.Fprintf(o.Out, "%s", text)
	default:
		for _, line := range drawTree(root, time.Now(), cli.Width(o.Out), paletteFor(o.Out)) {
			fmt.Fprintln(o.Out, line)
		}
	}
	return nil
}

// follow shows the cluster as it changes, until it is ready if that was asked.
func (o *treeOptions) follow(ctx context.Context) error {
	if _, err := getCluster(ctx, o.client, o.cluster); err != nil {
		return err
	}
	follower := graph.NewFollower(o.client)
	palette := paletteFor(o.ErrOut)
	var before graph.Snapshot
	ready := false
	err := cli.Wait(ctx, o.timeout, follower.Changed(), o.NewProgress(), tellLoss(follower, func() (cli.State, error) {
		g, err := followCluster(ctx, o.client, follower, o.cluster)
		if apierrors.IsNotFound(err) {
			return o.gone()
		}
		if err != nil {
			return cli.State{}, err
		}
		root := g.Tree(graph.TreeOptions{All: o.show == "all"})
		now := g.Tree(graph.TreeOptions{All: true}).Snapshot()
		changes := now.Changes(before)
		before = now
		missing := g.Unready()
		if missing == "" && !ready {
			changes = append(changes, fmt.Sprintf("Cluster/%s: all ready", o.cluster.Name))
		}
		ready = missing == ""
		return cli.State{
			Done:    o.until == untilReady && missing == "",
			Missing: missing,
			View:    cli.View{Screen: drawTree(root, time.Now(), cli.Width(o.ErrOut), palette), Changes: changes},
		}, nil
	}))
	if errors.Is(err, context.Canceled) && o.until == "" {
		// Such a watch has no other end.
		return &cli.Error{Code: cli.ExitInterrupted}
	}
	return err
}

// gone ends the watch of a cluster that was deleted: as hoped for, unless it was
// to become ready.
func (o *treeOptions) gone() (cli.State, error) {
	text := fmt.Sprintf("cluster %q has been deleted", o.cluster.Name)
	if o.until == untilReady {
		return cli.State{}, errors.New(text)
	}
	return cli.State{Done: true, View: cli.View{Screen: []string{text}, Changes: []string{text}}}, nil
}

// followCluster returns the cluster as the follower holds it, which learns on the
// way which kinds of the providers to follow.
func followCluster(ctx context.Context, c client.Client, follower *graph.Follower, cluster client.ObjectKey) (*graph.Graph, error) {
	var objects []client.Object
	for range 2 {
		sources, err := graph.Sources(c.RESTMapper(), cluster, objects)
		if err != nil {
			return nil, err
		}
		if err := follower.Follow(ctx, sources...); err != nil {
			return nil, err
		}
		if objects, err = follower.Objects(); err != nil {
			return nil, err
		}
	}
	return graph.Build(c.Scheme(), cluster, objects)
}

// paletteFor returns colours where out is a terminal that wants them.
func paletteFor(out io.Writer) palette {
	return palette{on: printers.AllowsColorOutput(out)}
}
