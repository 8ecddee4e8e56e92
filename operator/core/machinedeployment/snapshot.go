package machinedeployment

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// snapshot reads the sets of a deployment with sets: those it controls, and those that its selector matches and nobody
// controls. Their Machines come from the cache: a list of them for each step would cost more than the step, and what
// the sets are about to do is known from their sizes.
func (r *Reconciler) snapshot(ctx context.Context, reader client.Reader, deployment *clusterv1.MachineDeployment) (snapshot, error) {
	s := snapshot{deployment: deployment, machines: map[types.UID][]*clusterv1.Machine{}, now: time.Now()}
	selector, err := selectorOf(deployment)
	if err != nil {
		return s, err
	}
	list := &clusterv1.MachineSetList{}
	if err := reader.List(ctx, list, client.InNamespace(deployment.Namespace)); err != nil {
		return s, fmt.Errorf("list the MachineSets of MachineDeployment %q: %w", client.ObjectKeyFromObject(deployment), err)
	}
	for i := range list.Items {
		set := &list.Items[i]
		switch owner := metav1.GetControllerOf(set); {
		case owner == nil && selector.Matches(labels.Set(set.Labels)):
			s.orphans = append(s.orphans, set)
		case owner != nil && owner.UID == deployment.UID:
			s.sets = append(s.sets, set)
		}
	}

	machines := &clusterv1.MachineList{}
	if err := r.Client.List(ctx, machines, client.InNamespace(deployment.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return s, fmt.Errorf("list the Machines of MachineDeployment %q: %w", client.ObjectKeyFromObject(deployment), err)
	}
	for i := range machines.Items {
		if owner := metav1.GetControllerOf(&machines.Items[i]); owner != nil {
			s.machines[owner.UID] = append(s.machines[owner.UID], &machines.Items[i])
		}
	}
	return s, nil
}

// all returns the Machines of all sets of the deployment.
func (s snapshot) all() []*clusterv1.Machine {
	var out []*clusterv1.Machine
	for _, set := range s.sets {
		out = append(out, s.machines[set.UID]...)
	}
	return out
}

// replicasBefore returns how many replicas the sets of a deployment have together, nil when it has no set yet. It is
// asked for only where spec.replicas is unset.
func (r *Reconciler) replicasBefore(ctx context.Context, deployment *clusterv1.MachineDeployment) (*int32, error) {
	if deployment.Spec.Replicas != nil {
		return nil, nil
	}
	list := &clusterv1.MachineSetList{}
	if err := r.Client.List(ctx, list, client.InNamespace(deployment.Namespace)); err != nil {
		return nil, fmt.Errorf("list the MachineSets of MachineDeployment %q: %w", client.ObjectKeyFromObject(deployment), err)
	}
	var found []*clusterv1.MachineSet
	for i := range list.Items {
		if metav1.IsControlledBy(&list.Items[i], deployment) {
			found = append(found, &list.Items[i])
		}
	}
	if len(found) == 0 {
		return nil, nil
	}
	var sum int32
	for _, set := range found {
		sum += ptr.Deref(set.Spec.Replicas, 0)
	}
	return &sum, nil
}

func selectorOf(deployment *clusterv1.MachineDeployment) (labels.Selector, error) {
	selector, err := metav1.LabelSelectorAsSelector(&deployment.Spec.Selector)
	if err != nil {
		// Only the user can mend it, and the edit is an event.
		return nil, reconcile.TerminalError(fmt.Errorf("MachineDeployment %q: spec.selector: %w", client.ObjectKeyFromObject(deployment), err))
	}
	return selector, nil
}
