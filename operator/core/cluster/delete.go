package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// waiting is what a deletion waits for, in the words of the condition Deleting. A watch tells when it is over.
type waiting struct{ reason, message string }

// delete removes what belongs to the Cluster, one stage after the other: workers while the control plane still answers,
// the control plane while its infrastructure still stands.
func (r *Reconciler) delete(ctx context.Context, s *snapshot) error {
	if !controllerutil.ContainsFinalizer(s.cluster, clusterv1.ClusterFinalizer) {
		return nil // Somebody else's finalizer keeps it; our part is done.
	}
	if err := errors.Join(s.controlPlane.failed, s.infrastructure.failed); err != nil {
		s.deletion = &waiting{clusterv1.ClusterDeletingInternalErrorReason, err.Error()}
		return err // What is not known to be gone may still be there.
	}
	next := nextStage(s)
	for _, obj := range next.delete {
		if obj.GetDeletionTimestamp() != nil {
			continue
		}
		uid := obj.GetUID()
		// The lists share memory with the cache, and Delete may write into the object.
		target := obj.DeepCopyObject().(client.Object)
		err := r.Client.Delete(ctx, target, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete %s of Cluster %q: %w", obj.GetName(), client.ObjectKeyFromObject(s.cluster), err)
		}
	}
	s.deletion = &next.waiting
	if !next.last {
		return nil
	}
	if err := r.deleteSecrets(ctx, s.cluster); err != nil {
		return err
	}
	r.Workload.Forget(client.ObjectKeyFromObject(s.cluster))
	controllerutil.RemoveFinalizer(s.cluster, clusterv1.ClusterFinalizer)
	return nil
}

// deleteSecrets removes Secrets of the cluster that no garbage collector would: ours, and owned by nobody. Those that
// the user supplied have another type, and stay.
func (r *Reconciler) deleteSecrets(ctx context.Context, cluster *clusterv1.Cluster) error {
	list := &corev1.SecretList{}
	err := r.Client.List(ctx, list, client.InNamespace(cluster.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: cluster.Name})
	if err != nil {
		return fmt.Errorf("list the Secrets of Cluster %q: %w", client.ObjectKeyFromObject(cluster), err)
	}
	for i := range list.Items {
		secret := &list.Items[i]
		if secret.Type != clusterv1.ClusterSecretType || len(secret.OwnerReferences) > 0 {
			continue
		}
		if err := r.Client.Delete(ctx, secret); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete Secret %q of Cluster %q: %w", secret.Name, client.ObjectKeyFromObject(cluster), err)
		}
	}
	return nil
}

// stage is what a deletion does now.
type stage struct {
	delete []client.Object
	waiting
	// last is set when nothing is left to wait for.
	last bool
}

// nextStage picks the first stage that is not over.
func nextStage(s *snapshot) stage {
	workers := func(kind string, objs []client.Object) stage {
		return stage{delete: objs, waiting: waiting{clusterv1.ClusterDeletingWaitingForWorkersDeletionReason, namedList(kind, objs)}}
	}
	switch {
	case len(s.deployments) > 0:
		return workers("MachineDeployment", objects(s.deployments))
	case len(s.sets) > 0:
		return workers("MachineSet", objects(s.sets))
	case len(s.workers) > 0:
		return workers("Machine", objects(s.workers))
	case s.managedSets+s.managedWorkers > 0:
		return stage{waiting: waiting{clusterv1.ClusterDeletingWaitingForWorkersDeletionReason,
			fmt.Sprintf("%d MachineSets and %d worker Machines are being deleted by their owners", s.managedSets, s.managedWorkers)}}
	case s.controlPlane.obj != nil:
		return stage{
			delete:  []client.Object{s.controlPlane.obj},
			waiting: waiting{clusterv1.ClusterDeletingWaitingForControlPlaneDeletionReason, describe(s.controlPlane.ref) + " is being deleted"},
		}
	case len(s.controlPlaneMachines) > 0:
		objs := objects(s.controlPlaneMachines)
		return stage{delete: objs, waiting: waiting{clusterv1.ClusterDeletingWaitingForControlPlaneDeletionReason, namedList("Machine", objs)}}
	case s.infrastructure.obj != nil:
		return stage{
			delete:  []client.Object{s.infrastructure.obj},
			waiting: waiting{clusterv1.ClusterDeletingWaitingForInfrastructureDeletionReason, describe(s.infrastructure.ref) + " is being deleted"},
		}
	}
	return stage{last: true, waiting: waiting{clusterv1.ClusterDeletingDeletionCompletedReason, "Deletion completed"}}
}

// objects returns pointers to the items of a list.
func objects[T any, P interface {
	*T
	client.Object
}](items []T) []client.Object {
	out := make([]client.Object, 0, len(items))
	for i := range items {
		out = append(out, P(&items[i]))
	}
	return out
}

// maxNamed is how many objects a message names.
const maxNamed = 5

func namedList(kind string, objs []client.Object) string {
	var names []string
	for _, obj := range objs[:min(len(objs), maxNamed)] {
		names = append(names, obj.GetName())
	}
	text := kind + " " + strings.Join(names, ", ")
	verb := " is being deleted"
	if len(objs) > 1 {
		text, verb = kind+"s "+strings.Join(names, ", "), " are being deleted"
	}
	if hidden := len(objs) - maxNamed; hidden > 0 {
		text += fmt.Sprintf(", ... (%d more)", hidden)
	}
	return text + verb
}
