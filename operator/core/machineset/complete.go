package machineset

import (
	"context"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// completion remembers, for each set, its Machines that have all their objects, so that it looks at each but once. What a
// restart forgets is looked at once more.
type completion struct {
	mu   sync.Mutex
	sets map[client.ObjectKey]sets.Set[types.UID]
}

func (c *completion) add(set client.ObjectKey, machine types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sets == nil {
		c.sets = map[client.ObjectKey]sets.Set[types.UID]{}
	}
	if c.sets[set] == nil {
		c.sets[set] = sets.New[types.UID]()
	}
	c.sets[set].Insert(machine)
}

// unknown returns those of a set's Machines that are not known to be complete, and forgets all that are not among them.
func (c *completion) unknown(set client.ObjectKey, machines []*clusterv1.Machine) []*clusterv1.Machine {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, kept := c.sets[set], sets.New[types.UID]()
	var out []*clusterv1.Machine
	for _, machine := range machines {
		if known.Has(machine.UID) {
			kept.Insert(machine.UID)
		} else {
			out = append(out, machine)
		}
	}
	if known != nil {
		c.sets[set] = kept
	}
	return out
}

func (c *completion) forget(set client.ObjectKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.sets, set)
}

// planCompletions returns the Machines whose making may have been cut short: those that have not yet what their objects
// are there to give, and that refer to objects which the set makes.
func planCompletions(s snapshot, removed []*clusterv1.Machine) []*clusterv1.Machine {
	var out []*clusterv1.Machine
	for _, machine := range s.machines {
		if machine.DeletionTimestamp.IsZero() && !initialized(machine) && refersToOwn(s.set, machine) && !slices.Contains(removed, machine) {
			out = append(out, machine)
		}
	}
	return out
}

func initialized(machine *clusterv1.Machine) bool {
	done := machine.Status.Initialization
	return ptr.Deref(done.InfrastructureProvisioned, false) && ptr.Deref(done.BootstrapDataSecretCreated, false)
}

// refersToOwn tells whether a Machine refers to the objects that the set makes for one of its name. An adopted one may not.
func refersToOwn(set *clusterv1.MachineSet, machine *clusterv1.Machine) bool {
	template := set.Spec.Template.Spec
	bootstrap := template.Bootstrap.ConfigRef
	if bootstrap.IsDefined() {
		bootstrap = cloned(bootstrap, machine.Name)
	}
	return machine.Spec.InfrastructureRef == cloned(template.InfrastructureRef, machine.Name) && machine.Spec.Bootstrap.ConfigRef == bootstrap
}

// completeMachines makes the objects of Machines that lack them, because the operator died, or the API server refused them
// after it had taken the Machine.
func (r *Reconciler) completeMachines(ctx context.Context, set *clusterv1.MachineSet, from templates, machines []*clusterv1.Machine) error {
	unknown := r.complete.unknown(client.ObjectKeyFromObject(set), machines)
	if !from.complete(set) {
		return nil
	}
	_, err := inBatches(unknown, func(machine *clusterv1.Machine) (*clusterv1.Machine, error) {
		if err := r.completeMachine(ctx, set, from, machine); err != nil {
			return nil, fmt.Errorf("complete Machine %q: %w", client.ObjectKeyFromObject(machine), err)
		}
		return machine, nil
	})
	return err
}

func (r *Reconciler) completeMachine(ctx context.Context, set *clusterv1.MachineSet, from templates, machine *clusterv1.Machine) error {
	missing := false
	for _, ref := range []clusterv1.ContractVersionedObjectReference{machine.Spec.Bootstrap.ConfigRef, machine.Spec.InfrastructureRef} {
		if !ref.IsDefined() {
			continue
		}
		_, err := r.resolver.Get(ctx, machine.Namespace, ref)
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		missing = missing || err != nil
	}
	if !missing {
		r.complete.add(client.ObjectKeyFromObject(set), machine.UID)
		return nil
	}
	// Live: the objects of a Machine that goes are gone before it, and must not come again.
	live := &clusterv1.Machine{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(machine), live); err != nil {
		return client.IgnoreNotFound(err)
	}
	if live.UID != machine.UID || !live.DeletionTimestamp.IsZero() || initialized(live) {
		return nil
	}
	return r.createObjects(ctx, set, from, live)
}
