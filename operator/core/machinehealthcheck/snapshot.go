package machinehealthcheck

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/workload"
)

// snapshot reads the targets of a check, and their Nodes where the workload cluster answers. All of it comes from
// caches and is not copied: a check of a thousand Machines is asked whenever one of them changes.
func (r *Reconciler) snapshot(ctx context.Context, check *clusterv1.MachineHealthCheck, cluster *clusterv1.Cluster) (snapshot, error) {
	s := snapshot{now: time.Now(), check: check, cluster: cluster}
	var err error
	if s.targets, s.taken, err = r.targets(ctx, check); err != nil {
		return s, err
	}
	// Before it is initialized there is no API server to wait for.
	if len(s.targets) == 0 || !isInitialized(cluster) {
		return s, nil
	}
	key := client.ObjectKeyFromObject(cluster)
	connection, err := r.Workload.Get(ctx, key)
	if errors.Is(err, workload.ErrNotConnected) {
		return s, nil
	}
	if err != nil {
		return s, fmt.Errorf("MachineHealthCheck %q: %w", client.ObjectKeyFromObject(check), err)
	}
	s.connectedSince = r.Workload.Health(key).Since
	for i := range s.targets {
		if s.targets[i].node, err = nodeOf(ctx, connection.Client, s.targets[i].machine); err != nil {
			return s, err
		}
	}
	return s, nil
}

// targets returns the Machines that a check looks after, none while its selector is not valid, and the names of those
// that it leaves to older checks, by their names.
func (r *Reconciler) targets(ctx context.Context, check *clusterv1.MachineHealthCheck) ([]target, map[string][]string, error) {
	if validate(check) != nil {
		return nil, nil, nil
	}
	checks := &clusterv1.MachineHealthCheckList{}
	if err := r.Client.List(ctx, checks, client.InNamespace(check.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("list the MachineHealthChecks beside %q: %w", client.ObjectKeyFromObject(check), err)
	}
	rivals := rivalsOf(check, checks.Items)
	selector, err := metav1.LabelSelectorAsSelector(metav1.CloneSelectorAndAddLabel(&check.Spec.Selector, clusterv1.ClusterNameLabel, check.Spec.ClusterName))
	if err != nil {
		return nil, nil, fmt.Errorf("MachineHealthCheck %q: spec.selector: %w", client.ObjectKeyFromObject(check), err)
	}
	list := &clusterv1.MachineList{}
	err = r.Client.List(ctx, list, client.InNamespace(check.Namespace), client.MatchingLabelsSelector{Selector: selector}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, nil, fmt.Errorf("list the Machines of MachineHealthCheck %q: %w", client.ObjectKeyFromObject(check), err)
	}
	var out []target
	taken := map[string][]string{}
	for i := range list.Items {
		machine := &list.Items[i]
		if other := takenBy(rivals, machine); other != "" {
			taken[other] = append(taken[other], machine.Name)
		} else if isTarget(machine) {
			out = append(out, target{machine: machine})
		}
	}
	return out, taken, nil
}

// nodeOf returns the Node that a Machine refers to, nil when it refers to none or the Node is gone. Names are used again:
// a Node of this name with another providerID is another Machine's.
func nodeOf(ctx context.Context, nodes client.Reader, machine *clusterv1.Machine) (*corev1.Node, error) {
	name := machine.Status.NodeRef.Name
	if name == "" {
		return nil, nil
	}
	node := &corev1.Node{}
	switch err := nodes.Get(ctx, client.ObjectKey{Name: name}, node, client.UnsafeDisableDeepCopy); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("get Node %q of Machine %q: %w", name, client.ObjectKeyFromObject(machine), err)
	case node.Spec.ProviderID != "" && machine.Spec.ProviderID != "" && node.Spec.ProviderID != machine.Spec.ProviderID:
		return nil, nil
	}
	return node, nil
}

// clusterOf returns the Cluster of a check, nil when there is none.
func (r *Reconciler) clusterOf(ctx context.Context, check *clusterv1.MachineHealthCheck) (*clusterv1.Cluster, error) {
	cluster := &clusterv1.Cluster{}
	key := client.ObjectKey{Namespace: check.Namespace, Name: check.Spec.ClusterName}
	switch err := r.Client.Get(ctx, key, cluster); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("get Cluster %q of MachineHealthCheck %q: %w", key, client.ObjectKeyFromObject(check), err)
	}
	return cluster, nil
}
