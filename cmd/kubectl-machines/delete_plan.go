package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// removedAnnotation notes on an owner for which machines its replicas were lowered, in the same patch: a delete that is
// run again, while its machines still go, must not lower them twice.
const removedAnnotation = "millwright.dev/removed-machines"

// removedRecord is the value of removedAnnotation.
type removedRecord struct {
	// Replicas is what they were lowered to. More than that now means that somebody has scaled up since.
	Replicas int32       `json:"replicas"`
	Machines []types.UID `json:"machines"`
}

// deleteInput is what a deletion decides on: machines of one cluster, and what there is besides.
type deleteInput struct {
	cluster  *clusterv1.Cluster
	machines []ownedMachine
	// all are the machines of the cluster, and sets its MachineSets.
	all     []clusterv1.Machine
	sets    []clusterv1.MachineSet
	replace bool
}

// deletePlan is what a deletion comes to, before anything is written.
type deletePlan struct {
	removals []removal
	scales   []ownerScale
	warnings []string
}

// removal is what happens to one machine.
type removal struct {
	machine ownedMachine
	// mark annotates it as the one that goes when its owner has too many; outright deletes it.
	mark, outright bool
	// already says why there is nothing left to do.
	already string
}

// ownerScale lowers the replicas of an owner.
type ownerScale struct {
	target   target
	owner    client.Object
	from, to int32
	// record is the new value of removedAnnotation.
	record string
}

// planDelete decides how these very machines go.
func planDelete(in deleteInput) (deletePlan, error) {
	var plan deletePlan
	if in.cluster.DeletionTimestamp != nil {
		return plan, fmt.Errorf("cluster %q is being deleted, with all its machines", in.cluster.Name)
	}
	if isPaused(in.cluster, in.cluster) {
		plan.warnings = append(plan.warnings, fmt.Sprintf("cluster %q is paused: nothing happens until it is resumed", in.cluster.Name))
	}
	if in.replace {
		return plan, planReplaced(&plan, in)
	}
	byOwner := map[types.UID][]ownedMachine{}
	var owners []ownedMachine
	for _, m := range in.machines {
		switch {
		case m.other != "":
			return plan, fmt.Errorf("machine %q belongs to %s, whose replicas this command cannot lower: lower them there, or keep their number with --replace", m.Name, m.other)
		case m.owner == nil && m.controlPlane():
			return plan, fmt.Errorf("machine %q is a control-plane machine of nobody: delete it with kubectl once you know what becomes of its etcd member", m.Name)
		case m.owner == nil && m.DeletionTimestamp != nil:
			plan.removals = append(plan.removals, removal{machine: m, already: "is being deleted already"})
		case m.owner == nil:
			plan.removals = append(plan.removals, removal{machine: m, outright: true})
		default:
			if byOwner[m.owner.GetUID()] == nil {
				owners = append(owners, m)
			}
			byOwner[m.owner.GetUID()] = append(byOwner[m.owner.GetUID()], m)
		}
	}
	for _, first := range owners {
		if err := planOwner(&plan, in, first, byOwner[first.owner.GetUID()]); err != nil {
			return plan, err
		}
	}
	return plan, nil
}

// planOwner lowers the replicas of one owner by as many of its machines as are not on their way yet.
func planOwner(plan *deletePlan, in deleteInput, first ownedMachine, machines []ownedMachine) error {
	from := desired(first.owner)
	record := readRecord(first.owner)
	var going []types.UID
	for _, m := range in.all {
		if slices.Contains(record.Machines, m.UID) {
			going = append(going, m.UID)
		}
	}
	fresh := 0
	for _, m := range machines {
		switch {
		case slices.Contains(going, m.UID):
			plan.removals = append(plan.removals, removal{machine: m, already: "is on its way already: the replicas were lowered for it"})
		case m.DeletionTimestamp != nil:
			plan.removals = append(plan.removals, removal{machine: m, already: "is being deleted already: replicas stay as they are"})
		default:
			fresh++
			going = append(going, m.UID)
			plan.removals = append(plan.removals, removal{machine: m, mark: true, outright: needsOutright(m, in.sets)})
		}
	}
	if fresh == 0 {
		return nil
	}
	to := max(from-int32(fresh), 0)
	if err := refuseScale(first.target, first.owner, in.cluster, to); err != nil {
		return fmt.Errorf("%w; or keep the number with --replace", err)
	}
	if text := autoscalerWarning(first.target, first.owner, to); text != "" {
		plan.warnings = append(plan.warnings, text)
	}
	text, err := json.Marshal(removedRecord{Replicas: to, Machines: going})
	if err != nil {
		return fmt.Errorf("%s: encode %s: %w", first.target, removedAnnotation, err)
	}
	plan.scales = append(plan.scales, ownerScale{target: first.target, owner: first.owner, from: from, to: to, record: string(text)})
	return nil
}

// readRecord returns the record of an owner if it still holds. One that does not parse is somebody else's text.
func readRecord(owner client.Object) removedRecord {
	var record removedRecord
	if json.Unmarshal([]byte(owner.GetAnnotations()[removedAnnotation]), &record) != nil || desired(owner) > record.Replicas {
		return removedRecord{}
	}
	return record
}

// needsOutright tells whether lowering the replicas would not take this very machine. While a rollout is under way the
// deployment decides which of its sets shrinks: the current one may even grow, and with OnDelete or a paused rollout an
// old one need not shrink either. An old set that is being rolled away loses all its machines anyway, and would only
// make another for one that is deleted before its turn.
func needsOutright(m ownedMachine, sets []clusterv1.MachineSet) bool {
	deployment, ok := m.owner.(*clusterv1.MachineDeployment)
	if !ok {
		return false
	}
	rolling, current := false, false
	for _, set := range sets {
		switch {
		case !ownedBy(&set, deployment):
		case set.UID == m.set.UID:
			current = set.Annotations[clusterv1.RevisionAnnotation] == deployment.Annotations[clusterv1.RevisionAnnotation]
		case desired(&set) > 0 || set.Status.Replicas != nil && *set.Status.Replicas > 0:
			rolling = true
		}
	}
	onDelete := deployment.Spec.Rollout.Strategy.Type == clusterv1.OnDeleteMachineDeploymentStrategyType
	paused := deployment.Spec.Paused != nil && *deployment.Spec.Paused
	return rolling && (current || onDelete || paused)
}

func ownedBy(obj, owner client.Object) bool {
	for _, ref := range obj.GetOwnerReferences() {
		if ref.UID == owner.GetUID() {
			return true
		}
	}
	return false
}

// planReplaced deletes machines and leaves the replicas alone, so that their owners make others.
func planReplaced(plan *deletePlan, in deleteInput) error {
	var controlPlane []ownedMachine
	for _, m := range in.machines {
		switch {
		case m.owner == nil && m.other == "":
			return fmt.Errorf("machine %q has no owner that would make another: leave --replace out to delete it", m.Name)
		case m.owner != nil && m.owner.GetDeletionTimestamp() != nil:
			return fmt.Errorf("machine %q: %s is being deleted and makes no other", m.Name, m.target)
		case m.DeletionTimestamp != nil:
			plan.removals = append(plan.removals, removal{machine: m, already: "is being deleted already"})
			continue
		case m.controlPlane():
			controlPlane = append(controlPlane, m)
		}
		plan.removals = append(plan.removals, removal{machine: m, outright: true})
	}
	return refuseQuorumLoss(controlPlane, in.all)
}

// refuseQuorumLoss keeps a majority of the control plane: its machines are the members of etcd, unless that is external.
func refuseQuorumLoss(going []ownedMachine, all []clusterv1.Machine) error {
	if len(going) == 0 {
		return nil
	}
	if k, ok := going[0].owner.(*controlplanev1.KubeadmControlPlane); ok && k.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.External.IsDefined() {
		return nil
	}
	members, staying := 0, 0
	var unwell []string
	for _, m := range all {
		if role(&m) != "control-plane" {
			continue
		}
		members++
		switch {
		case slices.ContainsFunc(going, func(g ownedMachine) bool { return g.UID == m.UID }):
		case m.DeletionTimestamp != nil || conditionStatus(m.Status.Conditions, clusterv1.MachineNodeReadyCondition) != "True":
			unwell = append(unwell, m.Name)
		default:
			staying++
		}
	}
	quorum := members/2 + 1
	switch {
	case members == 1:
		return fmt.Errorf("machine %q is the whole control plane: the cluster's data would go with it: scale the control plane to 3 first", going[0].Name)
	case len(going) > 1:
		return fmt.Errorf("%d control-plane machines at once: delete one, and the next when it is replaced", len(going))
	case staying < quorum:
		return fmt.Errorf("machine %q: without it %d of %d members of etcd would be well, and %d must be (not well: %s): repair those first",
			going[0].Name, staying, members, quorum, strings.Join(unwell, ", "))
	}
	return nil
}
