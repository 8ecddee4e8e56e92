package machinedeployment

import (
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/contract"
	"github.com/millwright-dev/millwright/internal/lifecycle"
)

// snapshot is what the decisions about a MachineDeployment are taken from.
type snapshot struct {
	deployment *clusterv1.MachineDeployment
	// sets are those that the deployment controls.
	sets []*clusterv1.MachineSet
	// orphans match the selector and nobody controls them.
	orphans []*clusterv1.MachineSet
	// machines of the sets, by the UID of their set.
	machines map[types.UID][]*clusterv1.Machine
	now      time.Time
}

// plan is what to do with the MachineSets of a deployment.
type plan struct {
	adopt []*clusterv1.MachineSet
	// create is the set to make, nil when there is one to work with.
	create *clusterv1.MachineSet
	// update holds the sets that change, as they are to be.
	update []*clusterv1.MachineSet
	remove []*clusterv1.MachineSet
	// revision is that of the set that new Machines come from; 0 while a paused rollout has not made it.
	revision int64
	// scales tells that the plan changes how many Machines there will be, or what history there is.
	scales bool
}

// makePlan decides which sets there are and how many replicas each has.
func makePlan(s snapshot) plan {
	if !s.deployment.DeletionTimestamp.IsZero() {
		return plan{remove: slices.DeleteFunc(slices.Clone(s.sets), beingDeleted)}
	}
	var p plan
	for _, set := range s.orphans {
		if !beingDeleted(set) && set.Spec.ClusterName == s.deployment.Spec.ClusterName {
			p.adopt = append(p.adopt, set)
		}
	}
	if s.deployment.Spec.Replicas == nil {
		return p
	}
	sets := slices.SortedFunc(slices.Values(slices.Concat(s.sets, p.adopt)), lifecycle.OldestFirst)
	current := currentSet(s, sets)
	if current == nil && !paused(s.deployment) && selectsItsMachines(s.deployment) {
		p.create = newSet(s, nextRevision(sets, nil))
		current = p.create
	}
	next := lifecycle.PlanRollout(rollout(s, sets, current))
	if current != nil {
		p.revision = nextRevision(sets, current)
	}
	if p.create != nil {
		p.create.Spec.Replicas = ptr.To(next.Replicas[p.create.Name])
		p.scales = true
	}
	for _, set := range sets {
		if beingDeleted(set) {
			continue
		}
		want := desired(s, set, current, next, p.revision)
		p.scales = p.scales || ptr.Deref(want.Spec.Replicas, 0) != ptr.Deref(set.Spec.Replicas, -1)
		if !equality.Semantic.DeepEqual(set, want) {
			p.update = append(p.update, want)
		}
	}
	p.remove = forgotten(s, sets, current)
	p.scales = p.scales || len(p.remove) > 0
	return p
}

// currentSet returns the set that new Machines come from, nil when there is none. Where several could, as after an
// adoption, it is one that has replicas, and then the newest. sets are oldest first.
func currentSet(s snapshot, sets []*clusterv1.MachineSet) *clusterv1.MachineSet {
	var current *clusterv1.MachineSet
	for _, set := range slices.Backward(sets) {
		switch {
		case beingDeleted(set) || len(lifecycle.OutOfDate(set, s.deployment, s.now)) > 0:
		case ptr.Deref(set.Spec.Replicas, 0) > 0:
			return set
		case current == nil:
			current = set
		}
	}
	return current
}

// selectsItsMachines tells whether the selector matches the labels of the template. Machines without them would belong
// to nobody, so neither new sets get such labels nor those that are there.
func selectsItsMachines(deployment *clusterv1.MachineDeployment) bool {
	selector, err := metav1.LabelSelectorAsSelector(&deployment.Spec.Selector)
	return err == nil && selector.Matches(labels.Set(deployment.Spec.Template.Labels))
}

// nextRevision returns the revision of the current set: above all others. A set that is current again moves up.
func nextRevision(sets []*clusterv1.MachineSet, current *clusterv1.MachineSet) int64 {
	var others int64
	for _, set := range sets {
		if set != current {
			others = max(others, lifecycle.Revision(set))
		}
	}
	if current != nil && lifecycle.Revision(current) > others {
		return lifecycle.Revision(current)
	}
	return others + 1
}

// rollout translates the sets, which are oldest first, for the planner.
func rollout(s snapshot, sets []*clusterv1.MachineSet, current *clusterv1.MachineSet) lifecycle.Rollout {
	spec := s.deployment.Spec
	r := lifecycle.Rollout{
		Replicas: *spec.Replicas,
		Bounds:   lifecycle.RolloutBounds(spec.Rollout.Strategy, *spec.Replicas),
		OnDelete: onDelete(s.deployment),
		// Without a set to go to, scaling is all that there is to do.
		Paused: paused(s.deployment) || current == nil,
	}
	for _, set := range sets {
		if set != current {
			r.Old = append(r.Old, rolloutSet(s, set, current != nil))
		}
	}
	if current != nil {
		set := rolloutSet(s, current, false)
		r.Current = &set
	}
	return r
}

func rolloutSet(s snapshot, set *clusterv1.MachineSet, leaving bool) lifecycle.RolloutSet {
	out := lifecycle.RolloutSet{
		Name:     set.Name,
		Replicas: ptr.Deref(set.Spec.Replicas, 0),
		Reported: ptr.Deref(set.Status.Replicas, 0),
		Settled:  settled(set),
		Deleting: beingDeleted(set),
		Sized:    sizeFor(set),
	}
	for _, machine := range lifecycle.DeletionOf(set, leaving).Sort(s.machines[set.UID]) {
		out.Machines = append(out.Machines, lifecycle.RolloutMachine{
			Available: lifecycle.Available(machine),
			Deleting:  !machine.DeletionTimestamp.IsZero(),
		})
	}
	return out
}

// settled tells whether the controller of a set has acted on its spec, or will not: a set that is not stored yet, or
// that is paused by itself.
func settled(set *clusterv1.MachineSet) bool {
	return set.UID == "" || set.Status.ObservedGeneration >= set.Generation || contract.Paused(nil, set)
}

// forgotten returns the sets of history that are too many, once no rollout is under way: the oldest of those that have
// no Machines and will make none.
func forgotten(s snapshot, sets []*clusterv1.MachineSet, current *clusterv1.MachineSet) []*clusterv1.MachineSet {
	var history []*clusterv1.MachineSet
	for _, set := range sets {
		switch {
		case set == current || beingDeleted(set):
		case !settled(set) || !idle(s, set):
			return nil
		default:
			history = append(history, set)
		}
	}
	return history[:max(len(history)-lifecycle.HistoryLimit, 0)]
}

// idle tells whether a set has no Machines and wants none.
func idle(s snapshot, set *clusterv1.MachineSet) bool {
	return ptr.Deref(set.Spec.Replicas, 0) == 0 && ptr.Deref(set.Status.Replicas, 0) == 0 && len(s.machines[set.UID]) == 0
}

// sizeFor reads from a set for which size of the deployment it was scaled last.
func sizeFor(set *clusterv1.MachineSet) lifecycle.Size {
	wanted, err1 := strconv.ParseInt(set.Annotations[clusterv1.DesiredReplicasAnnotation], 10, 32)
	most, err2 := strconv.ParseInt(set.Annotations[clusterv1.MaxReplicasAnnotation], 10, 32)
	if err1 != nil || err2 != nil {
		return lifecycle.Size{}
	}
	return lifecycle.Size{Wanted: int32(wanted), Most: int32(most)}
}

func beingDeleted(set *clusterv1.MachineSet) bool { return !set.DeletionTimestamp.IsZero() }

func paused(deployment *clusterv1.MachineDeployment) bool {
	return ptr.Deref(deployment.Spec.Paused, false)
}

func onDelete(deployment *clusterv1.MachineDeployment) bool {
	return deployment.Spec.Rollout.Strategy.Type == clusterv1.OnDeleteMachineDeploymentStrategyType
}
