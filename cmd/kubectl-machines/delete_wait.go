package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/cli"
	"github.com/millwright-dev/millwright/internal/graph"
)

// waitFor shows how the machines go, and with --replace how others come, until that is done.
func (o *deleteOptions) waitFor(ctx context.Context, cluster client.ObjectKey, machines []ownedMachine) error {
	follower := graph.NewFollower(o.client)
	news := newsOnly()
	err := cli.Wait(ctx, o.timeout, follower.Changed(), o.NewProgress(), tellLoss(follower, func() (cli.State, error) {
		g, err := followCluster(ctx, o.client, follower, cluster)
		if err != nil {
			return cli.State{}, err
		}
		state := stillThere(g, machines)
		if state.Done && o.replace {
			state = othersReady(g, machines, state)
		}
		state.View.Changes = news(state.View.Changes)
		return state, nil
	}))
	if errors.Is(err, context.Canceled) {
		return &cli.Error{Code: cli.ExitInterrupted, Err: errors.New("interrupted: the deletion goes on by itself; run the command again to watch it")}
	}
	return err
}

// newsOnly returns a function that leaves those lines that its last call had too out.
func newsOnly() func([]string) []string {
	var before []string
	return func(lines []string) []string {
		var news []string
		for _, line := range lines {
			if !slices.Contains(before, line) {
				news = append(news, line)
			}
		}
		before = lines
		return news
	}
}

// stillThere tells which of the machines are not gone, and why. A machine of the same name with another uid is not one
// of them.
func stillThere(g *graph.Graph, machines []ownedMachine) cli.State {
	live := map[string]*clusterv1.Machine{}
	for _, o := range g.OfKind("Machine") {
		live[string(o.GetUID())] = o.Object.(*clusterv1.Machine)
	}
	state := cli.State{Done: true}
	var missing []string
	for _, m := range machines {
		now, there := live[string(m.UID)]
		line := "gone"
		if there {
			line = withMessage(phase(now.Status.Phase, now), machineMessage(now))
			missing = append(missing, fmt.Sprintf("machine %s: %s", m.Name, line))
			state.Done = false
		}
		state.View.Changes = append(state.View.Changes, fmt.Sprintf("Machine/%s: %s", m.Name, line))
	}
	state.View.Screen = state.View.Changes
	state.Missing = strings.Join(missing, "; ")
	return state
}

func withMessage(word, message string) string {
	if message == "" {
		return word
	}
	return word + ": " + message
}

// othersReady adds to the state of machines that are gone how far those in their place are.
func othersReady(g *graph.Graph, machines []ownedMachine, state cli.State) cli.State {
	seen := map[string]bool{}
	for _, m := range machines {
		if m.owner == nil || seen[m.target.String()] {
			continue
		}
		seen[m.target.String()] = true
		owner := g.Find(m.target.kind.GroupKind(), m.target.name)
		if owner == nil {
			continue
		}
		replicas := owner.Replicas()
		if replicas == nil || replicas.Desired == nil {
			continue
		}
		if scale := g.Scaled(owner, *replicas.Desired); !scale.Done {
			state.Done = false
			state.Missing = fmt.Sprintf("%s: %s", m.target, scale.Missing)
			state.View.Screen = append(state.View.Screen, state.Missing)
			state.View.Changes = append(state.View.Changes, state.Missing)
		}
	}
	return state
}
