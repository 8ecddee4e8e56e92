package sandboxtest

import (
	"context"
	"os"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Gauge keeps the fewest available and the most machines of a deployment that there ever were, as the API server tells
// of them, one change after another.
type Gauge struct {
	mu           sync.Mutex
	machines     map[types.UID]bool // whether it is available
	fewest, most int
}

// WatchMachines watches the machines of a deployment, count of which are available now, until the test ends.
func (s *Sandbox) WatchMachines(t *testing.T, deployment string, count int) *Gauge {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := clusterv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	events, err := c.Watch(context.WithoutCancel(t.Context()), &clusterv1.MachineList{}, client.MatchingLabels{clusterv1.MachineDeploymentNameLabel: deployment})
	if err != nil {
		t.Fatal(err)
	}
	g := &Gauge{machines: map[types.UID]bool{}, fewest: count, most: count}
	var work sync.WaitGroup
	over := make(chan struct{})
	work.Go(func() {
		begun := false
		for event := range events.ResultChan() {
			machine, ok := event.Object.(*clusterv1.Machine)
			if !ok {
				continue
			}
			// A watch begins with those that there are, one by one.
			begun = g.see(event.Type, machine, begun)
		}
		select {
		case <-over:
		default:
			t.Errorf("the watch of the machines of %s ended before the test", deployment)
		}
	})
	t.Cleanup(func() {
		close(over)
		events.Stop()
		work.Wait()
	})
	return g
}

// see takes a change and says whether all that there were at the beginning have been seen.
func (g *Gauge) see(change watch.EventType, machine *clusterv1.Machine, begun bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.machines[machine.UID] = machine.DeletionTimestamp.IsZero() && meta.IsStatusConditionTrue(machine.Status.Conditions, clusterv1.MachineAvailableCondition)
	if change == watch.Deleted {
		delete(g.machines, machine.UID)
	}
	available := 0
	for _, is := range g.machines {
		if is {
			available++
		}
	}
	if begun = begun || available == g.fewest; begun {
		g.fewest, g.most = min(g.fewest, available), max(g.most, len(g.machines))
	}
	return begun
}

// WantWithin fails the test where fewer were available, or more there, than these, at any time so far.
func (g *Gauge) WantWithin(t *testing.T, fewest, most int) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	t.Logf("between %d available and %d in all", g.fewest, g.most)
	if g.fewest < fewest || g.most > most {
		t.Errorf("between %d available and %d in all, want no fewer than %d and no more than %d", g.fewest, g.most, fewest, most)
	}
}
