package sandboxtest

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Chronicle is the order in which the Machines of a cluster came and went, as the API server tells of it.
type Chronicle struct {
	mu      sync.Mutex
	there   map[types.UID]Made
	entries []Made
	most    map[string]int
	// began is how many Machines there were at the beginning.
	began int
}

// Made is a Machine that was made, or an add-on that got another image. Owner is its MachineDeployment, empty for the control
// plane, or "addon NAME".
type Made struct {
	Name, Owner, Version string
	// Left counts, for each owner, the Machines of another version that there were at that moment.
	Left map[string]int
}

func (m Made) String() string {
	owner := m.Owner
	if owner == "" {
		owner = "control plane"
	}
	return fmt.Sprintf("%s %s (%s)", owner, m.Version, m.Name)
}

// Chronicle watches the Machines of a cluster until the test ends.
func (s *Sandbox) Chronicle(t *testing.T, cluster string) *Chronicle {
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
	list, of := &clusterv1.MachineList{}, client.MatchingLabels{clusterv1.ClusterNameLabel: cluster}
	if err := c.List(t.Context(), list, of); err != nil {
		t.Fatal(err)
	}
	chronicle := &Chronicle{there: map[types.UID]Made{}, most: map[string]int{}, began: len(list.Items)}
	for i := range list.Items {
		chronicle.see(watch.Added, &list.Items[i])
	}
	events, err := c.Watch(context.WithoutCancel(t.Context()), &clusterv1.MachineList{}, of, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	if err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	over := make(chan struct{})
	work.Go(func() {
		for event := range events.ResultChan() {
			if machine, ok := event.Object.(*clusterv1.Machine); ok {
				chronicle.see(event.Type, machine)
			}
		}
		select {
		case <-over:
		default:
			t.Errorf("the watch of the machines of %s ended before the test", cluster)
		}
	})
	t.Cleanup(func() {
		close(over)
		events.Stop()
		work.Wait()
	})
	return chronicle
}

func (c *Chronicle) see(change watch.EventType, machine *clusterv1.Machine) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if change == watch.Deleted {
		delete(c.there, machine.UID)
		return
	}
	if _, known := c.there[machine.UID]; known {
		return
	}
	made := Made{Name: machine.Name, Owner: machine.Labels[clusterv1.MachineDeploymentNameLabel], Version: machine.Spec.Version, Left: map[string]int{}}
	count := 1
	for _, other := range c.there {
		if other.Version != made.Version {
			made.Left[other.Owner]++
		}
		if other.Owner == made.Owner {
			count++
		}
	}
	c.there[machine.UID] = made
	c.entries = append(c.entries, made)
	c.most[made.Owner] = max(c.most[made.Owner], count)
}

// note adds something that is no Machine.
func (c *Chronicle) note(owner, version, target string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	made := Made{Owner: owner, Version: version, Left: map[string]int{}}
	for _, other := range c.there {
		if other.Version != target {
			made.Left[other.Owner]++
		}
	}
	c.entries = append(c.entries, made)
}

// All lists all that there was after the Machines of the beginning, in order.
func (c *Chronicle) All() []Made {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Made(nil), c.entries[c.began:]...)
}

// String is an entry a line.
func (c *Chronicle) String() string {
	var out strings.Builder
	for _, made := range c.All() {
		fmt.Fprintln(&out, made)
	}
	return out.String()
}

// Most is the most Machines of an owner that there ever were at once.
func (c *Chronicle) Most(owner string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.most[owner]
}
