package machineset

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// readMachines reads the Machines that match the set's selector.
func (s *snapshot) readMachines(ctx context.Context, reader client.Reader) error {
	selector, err := metav1.LabelSelectorAsSelector(&s.set.Spec.Selector)
	if err != nil {
		return reconcile.TerminalError(fmt.Errorf("MachineSet %q: spec.selector: %w", client.ObjectKeyFromObject(s.set), err))
	}
	list := &clusterv1.MachineList{}
	if err := reader.List(ctx, list, client.InNamespace(s.set.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return fmt.Errorf("list the Machines of MachineSet %q: %w", client.ObjectKeyFromObject(s.set), err)
	}
	machines := make([]*clusterv1.Machine, 0, len(list.Items))
	for i := range list.Items {
		machines = append(machines, &list.Items[i])
	}
	s.machines, s.orphans = split(s.set, machines)
	return nil
}

// clusterOf returns the Cluster of a set, nil when there is none.
func (r *Reconciler) clusterOf(ctx context.Context, set *clusterv1.MachineSet) (*clusterv1.Cluster, error) {
	cluster := &clusterv1.Cluster{}
	key := client.ObjectKey{Namespace: set.Namespace, Name: set.Spec.ClusterName}
	switch err := r.Client.Get(ctx, key, cluster); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("get Cluster %q of MachineSet %q: %w", key, client.ObjectKeyFromObject(set), err)
	}
	return cluster, nil
}

// deploymentOf returns the MachineDeployment that owns a set, nil when none does.
func (r *Reconciler) deploymentOf(ctx context.Context, set *clusterv1.MachineSet) (*clusterv1.MachineDeployment, error) {
	owner := metav1.GetControllerOf(set)
	if owner == nil || owner.Kind != "MachineDeployment" {
		return nil, nil
	}
	deployment := &clusterv1.MachineDeployment{}
	key := client.ObjectKey{Namespace: set.Namespace, Name: owner.Name}
	switch err := r.Client.Get(ctx, key, deployment); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("get MachineDeployment %q of MachineSet %q: %w", key, client.ObjectKeyFromObject(set), err)
	}
	return deployment, nil
}
