package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/cli"
	"github.com/millwright-dev/millwright/internal/graph"
)

// waitFor shows how the machines of the target come and go until there are as
// many as wanted.
func (o *scaleOptions) waitFor(ctx context.Context, cluster client.ObjectKey) error {
	follower := graph.NewFollower(o.client)
	palette := paletteFor(o.ErrOut)
	var before graph.Snapshot
	err := cli.Wait(ctx, o.timeout, follower.Changed(), o.NewProgress(), tellLoss(follower, func() (cli.State, error) {
		g, err := followCluster(ctx, o.client, follower, cluster)
		if err != nil {
			return cli.State{}, err
		}
		owner := g.Find(o.target.kind.GroupKind(), o.target.name)
		if owner == nil {
			return cli.State{}, fmt.Errorf("%s was deleted meanwhile", o.target)
		}
		if now := owner.Replicas(); now == nil || now.Desired == nil || *now.Desired != o.replicas {
			return cli.State{}, fmt.Errorf("%s: somebody else has set other replicas than %d meanwhile: see kubectl get %s -n %s -o yaml --show-managed-fields",
				o.target, o.replicas, o.target.resource(), o.namespace)
		}
		scale := g.Scaled(owner, o.replicas)
		now := g.Owned(owner, graph.TreeOptions{All: true}).Snapshot()
		changes := now.Changes(before)
		before = now
		screen := drawTree(g.Owned(owner, graph.TreeOptions{}), time.Now(), cli.Width(o.ErrOut), palette)
		if scale.Done {
			done := fmt.Sprintf("%s has %s", o.target, allReady(o.replicas))
			screen, changes = append(screen, done), append(changes, done)
		}
		return cli.State{
			Done:    scale.Done,
			Missing: fmt.Sprintf("%s: %s", o.target, scale.Missing),
			View:    cli.View{Screen: screen, Changes: changes},
		}, nil
	}))
	if errors.Is(err, context.Canceled) {
		return &cli.Error{Code: cli.ExitInterrupted, Err: fmt.Errorf("interrupted: %s goes on by itself; run the command again to watch it", o.target)}
	}
	return err
}

func allReady(machines int32) string {
	switch machines {
	case 0:
		return "no machines"
	case 1:
		return "1 machine, ready"
	}
	return fmt.Sprintf("%d machines, all ready", machines)
}
