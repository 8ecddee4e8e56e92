package controlplane

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/millwright-dev/millwright/internal/lifecycle"
)

// delete takes the control plane down, once all other Machines of the cluster are gone. etcd is not
// asked: it goes as a whole.
func (r *Reconciler) delete(ctx context.Context, s *snapshot) (report, error) {
	failed := func(err error) (report, error) {
		return report{deletingReason: controlplanev1.KubeadmControlPlaneDeletingInternalErrorReason, deletingMessage: err.Error()}, err
	}
	workers, err := r.otherMachines(ctx, s)
	if err != nil {
		return failed(err)
	}
	if len(workers) > 0 {
		return report{
			deletingReason:  controlplanev1.KubeadmControlPlaneDeletingWaitingForWorkersDeletionReason,
			deletingMessage: "Waiting for the other Machines of the Cluster to go: " + strings.Join(workers, ", "),
		}, nil
	}
	if len(s.replicas) == 0 {
		// Only the API server knows that none is left.
		live, err := r.machines(ctx, r.Live, s.controlPlane, s.cluster)
		if err != nil {
			return failed(err)
		}
		for _, machine := range live {
			s.replicas = append(s.replicas, &replica{machine: machine})
		}
	}
	if len(s.replicas) == 0 {
		controllerutil.RemoveFinalizer(s.controlPlane, controlplanev1.KubeadmControlPlaneFinalizer)
		return report{deletingReason: controlplanev1.KubeadmControlPlaneDeletingDeletionCompletedReason}, nil
	}

	var errs []error
	for _, replica := range s.replicas {
		errs = append(errs, r.unhook(ctx, replica))
		if !replica.deleting() {
			errs = append(errs, r.remove(ctx, s, replica))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return failed(err)
	}
	return report{
		deletingReason:  controlplanev1.KubeadmControlPlaneDeletingWaitingForMachineDeletionReason,
		deletingMessage: lifecycle.WaitingForMachines(s.machines()),
	}, nil
}

// maxNamed is how many Machines a message names.
const maxNamed = 5

// otherMachines names the Machines of the cluster that are not the control plane's.
func (r *Reconciler) otherMachines(ctx context.Context, s *snapshot) ([]string, error) {
	list := &clusterv1.MachineList{}
	err := r.Client.List(ctx, list, client.InNamespace(s.cluster.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: s.cluster.Name})
	if err != nil {
		return nil, fmt.Errorf("list Machines of Cluster %q: %w", client.ObjectKeyFromObject(s.cluster), err)
	}
	var names []string
	for i := range list.Items {
		if _, ok := list.Items[i].Labels[clusterv1.MachineControlPlaneLabel]; !ok {
			names = append(names, list.Items[i].Name)
		}
	}
	slices.Sort(names)
	if hidden := len(names) - maxNamed; hidden > 0 {
		names = append(names[:maxNamed], fmt.Sprintf("... (%d more)", hidden))
	}
	return names, nil
}
