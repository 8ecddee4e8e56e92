package machineset

import (
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/lifecycle"
)

// snapshot is what the decisions about a MachineSet are taken from.
type snapshot struct {
	set *clusterv1.MachineSet
	// machines are those that the set controls, the ones being deleted too.
	machines []*clusterv1.Machine
	// orphans match the selector and nobody controls them.
	orphans []*clusterv1.Machine
	// deployment owns the set; nil when none does.
	deployment *clusterv1.MachineDeployment
	// domains are the failure domains to spread new Machines over; none where the template says where they go.
	domains []string
	// blocked says why no Machine can be created.
	blocked []string
	now     time.Time
}

// plan is what to do with the Machines of a MachineSet.
type plan struct {
	adopt  []*clusterv1.Machine
	create []*clusterv1.Machine
	remove []*clusterv1.Machine
	// update holds Machines that are to take over a change of the template in place.
	update []*clusterv1.Machine
	// complete holds Machines whose objects may not have been made.
	complete []*clusterv1.Machine
	// remediate is about Machines that a health check looked at.
	remediate []remediation
}

// deletes tells whether the plan deletes a Machine.
func (p plan) deletes() bool {
	return len(p.remove) > 0 || slices.ContainsFunc(p.remediate, func(todo remediation) bool { return todo.remove })
}

// makePlan decides what brings the set to its number of Machines that are well.
func makePlan(s snapshot) plan {
	p := planReplicas(s)
	if s.set.DeletionTimestamp.IsZero() {
		p.remediate = planRemediation(s, p.remove)
		p.update = planUpdates(s, p.remove)
		p.complete = planCompletions(s, p.remove)
	}
	return p
}

// planReplicas decides what brings the set to its number of Machines. A Machine being deleted counts until it is gone, as
// upstream counts: its host still uses what a replacement would need.
func planReplicas(s snapshot) plan {
	var p plan
	if !s.set.DeletionTimestamp.IsZero() {
		for _, machine := range s.machines {
			if machine.DeletionTimestamp.IsZero() {
				p.remove = append(p.remove, machine)
			}
		}
		return p
	}

	for _, machine := range s.orphans {
		if machine.DeletionTimestamp.IsZero() && machine.Spec.ClusterName == s.set.Spec.ClusterName {
			p.adopt = append(p.adopt, machine)
		}
	}
	if s.set.Spec.Replicas == nil {
		return p
	}
	machines := slices.Concat(s.machines, p.adopt)
	surplus := len(machines) - int(*s.set.Spec.Replicas)
	if surplus < 0 {
		p.create = planCreations(s, machines, -surplus)
		return p
	}
	for _, machine := range lifecycle.DeletionOf(s.set, s.leaving()).Sort(machines)[:surplus] {
		if machine.DeletionTimestamp.IsZero() {
			p.remove = append(p.remove, machine)
		}
	}
	return p
}

// planCreations returns count new Machines, each in a free place and in the failure domain with the fewest.
func planCreations(s snapshot, machines []*clusterv1.Machine, count int) []*clusterv1.Machine {
	name, err := namingOf(s.set)
	if createDisabled(s.set) || err != nil {
		return nil
	}
	taken := sets.New[string]()
	for _, machine := range slices.Concat(s.machines, s.orphans) {
		taken.Insert(machine.Name)
	}
	counts := lifecycle.CountDomains(machines)
	var out []*clusterv1.Machine
	for _, place := range freePlaces(name, s.set.UID, taken, count) {
		machine := newMachine(s.set, place.name)
		if len(s.domains) > 0 {
			machine.Spec.FailureDomain = lifecycle.NextDomain(s.domains, counts, place.number)
		}
		out = append(out, machine)
	}
	return out
}

// planUpdates returns the Machines that differ from the template in what they can take over in place, but for those that
// are removed anyway. Labels by which the set would lose its Machines are not brought onto them.
func planUpdates(s snapshot, removed []*clusterv1.Machine) []*clusterv1.Machine {
	if !selectsItsMachines(s.set) {
		return nil
	}
	var out []*clusterv1.Machine
	for _, machine := range s.machines {
		if !keepsUp(s.set, machine) && !slices.Contains(removed, machine) {
			out = append(out, machine)
		}
	}
	return out
}

// leaving tells whether a rollout takes all Machines of the set away.
func (s snapshot) leaving() bool {
	return s.deployment != nil && lifecycle.Revision(s.deployment) != lifecycle.Revision(s.set)
}

// createDisabled reads the annotation with which a deployment holds back a set.
func createDisabled(set *clusterv1.MachineSet) bool {
	disabled, err := strconv.ParseBool(set.Annotations[clusterv1.DisableMachineCreateAnnotation])
	return err == nil && disabled
}

// split sorts the Machines that match the selector of a set into those it controls and those nobody does.
func split(set *clusterv1.MachineSet, machines []*clusterv1.Machine) (controlled, orphans []*clusterv1.Machine) {
	for _, machine := range machines {
		switch owner := metav1.GetControllerOf(machine); {
		case owner == nil:
			orphans = append(orphans, machine)
		case owner.UID == set.UID:
			controlled = append(controlled, machine)
		}
	}
	return controlled, orphans
}
