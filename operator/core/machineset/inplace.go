package machineset

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/contract"
	"github.com/millwright-dev/millwright/internal/lifecycle"
	"github.com/millwright-dev/millwright/internal/patch"
)

// defaultNodeDeletionTimeout is what upstream's webhook gives a Machine, in seconds.
const defaultNodeDeletionTimeout = 10

// keepUp brings onto a Machine what it takes over from its set's template in place. One that is being deleted takes
// over the timeouts alone: by them a user lets a deletion go on that is stuck.
func keepUp(set *clusterv1.MachineSet, machine *clusterv1.Machine) {
	if !machine.DeletionTimestamp.IsZero() {
		machine.Spec.Deletion = deletionOf(set)
		return
	}
	lifecycle.Propagate(machine, machineLabels(set), set.Spec.Template.Annotations)
	lifecycle.PropagateSpec(&machine.Spec, set.Spec.Template.Spec)
	machine.Spec.Deletion = deletionOf(set)
}

// keepsUp tells whether keepUp would change nothing. It spares a thousand Machines that are as they should be a copy.
func keepsUp(set *clusterv1.MachineSet, machine *clusterv1.Machine) bool {
	have, want := machine.Spec, set.Spec.Template.Spec
	if !equality.Semantic.DeepEqual(have.Deletion, deletionOf(set)) {
		return false
	}
	return !machine.DeletionTimestamp.IsZero() ||
		lifecycle.Propagated(machine, machineLabels(set), set.Spec.Template.Annotations) &&
			ptr.Equal(have.MinReadySeconds, want.MinReadySeconds) &&
			equality.Semantic.DeepEqual(have.ReadinessGates, want.ReadinessGates) &&
			equality.Semantic.DeepEqual(have.Taints, want.Taints)
}

func deletionOf(set *clusterv1.MachineSet) clusterv1.MachineDeletionSpec {
	deletion := *set.Spec.Template.Spec.Deletion.DeepCopy()
	if deletion.NodeDeletionTimeoutSeconds == nil {
		deletion.NodeDeletionTimeoutSeconds = ptr.To[int32](defaultNodeDeletionTimeout)
	}
	return deletion
}

// machineLabels are the template's and those by which a Machine of a set and of a deployment is found.
func machineLabels(set *clusterv1.MachineSet) map[string]string {
	own := labels.Set{
		clusterv1.ClusterNameLabel:    set.Spec.ClusterName,
		clusterv1.MachineSetNameLabel: contract.LabelValue(set.Name),
	}
	if deployment, ok := set.Labels[clusterv1.MachineDeploymentNameLabel]; ok {
		own[clusterv1.MachineDeploymentNameLabel] = deployment
	}
	return labels.Merge(set.Spec.Template.Labels, own)
}

// updateMachines brings what changed in the template onto Machines. The objects that belong to one come first: as long as
// the Machine is as it was, the next try does them again.
func (r *Reconciler) updateMachines(ctx context.Context, set *clusterv1.MachineSet, machines []*clusterv1.Machine) error {
	_, err := inBatches(machines, func(machine *clusterv1.Machine) (*clusterv1.Machine, error) {
		if machine.DeletionTimestamp.IsZero() {
			for _, ref := range []clusterv1.ContractVersionedObjectReference{machine.Spec.Bootstrap.ConfigRef, machine.Spec.InfrastructureRef} {
				if err := r.updateObject(ctx, set, machine.Namespace, ref); err != nil {
					return nil, fmt.Errorf("update Machine %q: %w", client.ObjectKeyFromObject(machine), err)
				}
			}
		}
		helper := patch.New(machine, r.Client)
		keepUp(set, machine)
		return machine, client.IgnoreNotFound(helper.Patch(ctx, machine))
	})
	return err
}

// updateObject brings labels and annotations onto a Machine's bootstrap config or infrastructure object.
func (r *Reconciler) updateObject(ctx context.Context, set *clusterv1.MachineSet, namespace string, ref clusterv1.ContractVersionedObjectReference) error {
	if !ref.IsDefined() {
		return nil
	}
	obj, err := r.resolver.Get(ctx, namespace, ref)
	if apierrors.IsNotFound(err) {
		// Its Machine says so. Labels are no reason to do it too.
		return nil
	}
	if err != nil {
		return err
	}
	helper := patch.New(obj, r.Client)
	lifecycle.Propagate(obj, machineLabels(set), set.Spec.Template.Annotations)
	if err := helper.Patch(ctx, obj); client.IgnoreNotFound(err) != nil {
		return err
	}
	return nil
}
