package lifecycle

import (
	"cmp"
	"hash/fnv"
	"slices"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/conditions"
)

// Deletion says in which order the Machines of a set go when there are too many. The set follows it, and a rollout
// counts on it.
type Deletion struct {
	Order clusterv1.MachineSetDeletionOrder
	// Leaving is for an old set of a rollout, which loses every Machine in the end. A Machine that is marked to go first
	// does not go before those that are of no use.
	Leaving bool
	// Spread takes from the failure domain that has the most.
	Spread bool
}

// DeletionOf returns the order of a set. leaving tells that it is an old set of a rollout.
func DeletionOf(set *clusterv1.MachineSet, leaving bool) Deletion {
	return Deletion{Order: set.Spec.Deletion.Order, Leaving: leaving, Spread: SpreadsDomains(set)}
}

// Available tells whether a Machine counts as available: not when it is being deleted.
func Available(machine *clusterv1.Machine) bool {
	return machine.DeletionTimestamp.IsZero() && conditions.IsTrue(machine, clusterv1.MachineAvailableCondition)
}

// Sort returns the Machines in the order of their deletion: being deleted, marked to be deleted first, unhealthy, not
// available, all others; among equals by failure domain, then by age or chance. Chance is the same on every try.
func (d Deletion) Sort(machines []*clusterv1.Machine) []*clusterv1.Machine {
	type candidate struct {
		machine *clusterv1.Machine
		rank    int
		chance  uint64
	}
	candidates := make([]candidate, 0, len(machines))
	for _, machine := range machines {
		candidates = append(candidates, candidate{machine, d.rank(machine), hashUID(machine)})
	}
	slices.SortFunc(candidates, func(a, b candidate) int {
		return cmp.Or(
			cmp.Compare(a.rank, b.rank),
			d.byAge(a.machine, b.machine),
			cmp.Compare(a.chance, b.chance),
			cmp.Compare(a.machine.Name, b.machine.Name),
		)
	})
	out := make([]*clusterv1.Machine, 0, len(machines))
	if !d.Spread {
		for _, c := range candidates {
			out = append(out, c.machine)
		}
		return out
	}

	counts := CountDomains(machines)
	for len(candidates) > 0 {
		equals := slices.IndexFunc(candidates, func(c candidate) bool { return c.rank != candidates[0].rank })
		if equals < 0 {
			equals = len(candidates)
		}
		group := candidates[:equals]
		candidates = candidates[equals:]
		for len(group) > 0 {
			next := 0
			for i, c := range group {
				if counts[DomainOf(c.machine)] > counts[DomainOf(group[next].machine)] {
					next = i
				}
			}
			machine := group[next].machine
			if machine.DeletionTimestamp.IsZero() {
				counts[DomainOf(machine)]--
			}
			out = append(out, machine)
			group = slices.Delete(group, next, next+1)
		}
	}
	return out
}

func (d Deletion) rank(machine *clusterv1.Machine) int {
	_, marked := machine.Annotations[clusterv1.DeleteMachineAnnotation]
	switch {
	case !machine.DeletionTimestamp.IsZero():
		return 0
	case marked && !d.Leaving:
		return 1
	case !healthy(machine):
		return 2
	case !conditions.IsTrue(machine, clusterv1.MachineAvailableCondition):
		return 3
	case marked:
		return 4
	}
	return 5
}

func (d Deletion) byAge(a, b *clusterv1.Machine) int {
	byAge := a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	switch d.Order {
	case clusterv1.OldestMachineSetDeletionOrder:
		return byAge
	case clusterv1.NewestMachineSetDeletionOrder:
		return -byAge
	}
	return 0
}

// healthy tells whether a Machine serves: it has a Node that is well, and no health check failed.
func healthy(machine *clusterv1.Machine) bool {
	return machine.Status.NodeRef.IsDefined() &&
		conditions.IsTrue(machine, clusterv1.MachineNodeHealthyCondition) &&
		!conditions.IsFalse(machine, clusterv1.MachineHealthCheckSucceededCondition)
}

func hashUID(machine *clusterv1.Machine) uint64 {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(machine.UID))
	return hash.Sum64()
}
