package machine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/millwright-dev/millwright/internal/conditions"
)

// waiting is what a step of a deletion waits for, in the words of the condition Deleting.
type waiting struct {
	reason, message string
	// after is when to look again where no watch tells; zero when one does.
	after time.Duration
	// done is set when nothing is left to wait for.
	done bool
}

// step is one stage of a deletion. It returns nil when it is passed, and is asked again on every reconcile.
type step func(context.Context, *snapshot) (*waiting, error)

// delete walks the deletion in the order of the contract, as far as it gets, and returns when to look again.
func (r *Reconciler) delete(ctx context.Context, s *snapshot) (time.Duration, error) {
	if !controllerutil.ContainsFinalizer(s.machine, clusterv1.MachineFinalizer) {
		return 0, nil // Somebody else's finalizer keeps it; our part is done.
	}
	var err error
	if s.lastControlPlane, err = r.isLastControlPlane(ctx, s.machine); err != nil {
		return 0, err
	}
	if s.machine.Status.Deletion == nil {
		s.machine.Status.Deletion = &clusterv1.MachineDeletionStatus{}
	}
	for _, next := range []step{
		r.waitForPreDrainHooks,
		r.drain,
		r.waitForVolumes,
		r.waitForPreTerminateHooks,
		r.deleteInfrastructure,
		r.deleteBootstrap,
		r.deleteNode,
	} {
		wait, err := next(ctx, s)
		if err != nil {
			s.deletion = &waiting{reason: clusterv1.MachineDeletingInternalErrorReason, message: err.Error()}
			return 0, err
		}
		if wait != nil {
			s.deletion = wait
			return wait.after, nil
		}
	}
	controllerutil.RemoveFinalizer(s.machine, clusterv1.MachineFinalizer)
	s.deletion = &waiting{reason: clusterv1.MachineDeletingDeletionCompletedReason, message: "Deletion completed", done: true}
	deletionSeconds.Observe(s.now.Sub(s.machine.DeletionTimestamp.Time).Seconds())
	return 0, nil
}

func (r *Reconciler) waitForPreDrainHooks(_ context.Context, s *snapshot) (*waiting, error) {
	hooks := hooksOf(s.machine, clusterv1.PreDrainDeleteHookAnnotationPrefix)
	if len(hooks) == 0 {
		return nil, nil
	}
	begin(&s.machine.Status.Deletion.WaitForPreDrainHookStartTime, s.now)
	return &waiting{
		reason: clusterv1.MachineDeletingWaitingForPreDrainHookReason,
		message: fmt.Sprintf("Waiting since %s until the annotations %s are removed by those who set them",
			stamp(s.machine.Status.Deletion.WaitForPreDrainHookStartTime.Time), strings.Join(hooks, ", ")),
	}, nil
}

func (r *Reconciler) waitForPreTerminateHooks(_ context.Context, s *snapshot) (*waiting, error) {
	hooks := hooksOf(s.machine, clusterv1.PreTerminateDeleteHookAnnotationPrefix)
	if len(hooks) == 0 {
		return nil, nil
	}
	begin(&s.machine.Status.Deletion.WaitForPreTerminateHookStartTime, s.now)
	return &waiting{
		reason: clusterv1.MachineDeletingWaitingForPreTerminateHookReason,
		message: fmt.Sprintf("Waiting since %s until the annotations %s are removed by those who set them",
			stamp(s.machine.Status.Deletion.WaitForPreTerminateHookStartTime.Time), strings.Join(hooks, ", ")),
	}, nil
}

func (r *Reconciler) deleteInfrastructure(ctx context.Context, s *snapshot) (*waiting, error) {
	return r.deleteExternal(ctx, s, s.infrastructure, clusterv1.MachineDeletingWaitingForInfrastructureDeletionReason)
}

func (r *Reconciler) deleteBootstrap(ctx context.Context, s *snapshot) (*waiting, error) {
	return r.deleteExternal(ctx, s, s.bootstrap, clusterv1.MachineDeletingWaitingForBootstrapDeletionReason)
}

// deleteExternal deletes an object and waits until it is gone; its watch tells when.
func (r *Reconciler) deleteExternal(ctx context.Context, s *snapshot, e external, reason string) (*waiting, error) {
	if e.failed != nil {
		return nil, e.failed
	}
	if e.obj == nil && !waitedFor(s, reason) && !waitedFor(s, clusterv1.MachineDeletingWaitingForBootstrapDeletionReason) && !waitedFor(s, clusterv1.MachineDeletingDeletingNodeReason) {
		var err error
		// Nobody has seen it go. A cache that has not seen it come yet must not leave it, and its virtual machine, behind.
		if e, err = r.externalLive(ctx, s.machine, e); err != nil {
			return nil, err
		}
	}
	if e.obj == nil {
		return nil, nil
	}
	if !e.going() {
		err := r.Client.Delete(ctx, e.obj, asSeen(e.obj), client.PropagationPolicy(metav1.DeletePropagationBackground))
		if apierrors.IsConflict(err) {
			return &waiting{reason: reason, message: fmt.Sprintf("%s has just changed: it is deleted as soon as that is seen", describe(e.ref)),
				after: retryWait(0)}, nil
		}
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("delete %s: %w", describe(e.ref), err)
		}
	}
	return &waiting{reason: reason, message: fmt.Sprintf("%s is being deleted", describe(e.ref))}, nil
}

// asSeen lets a deletion hit this very object; one that no finalizer guards, only as it was read. The API server removes
// such an object at once, also when its provider adds a finalizer in that moment: what the finalizer was to guard, a
// virtual machine in the making, would be left behind.
func asSeen(obj client.Object) client.Preconditions {
	uid, version := obj.GetUID(), obj.GetResourceVersion()
	if len(obj.GetFinalizers()) > 0 {
		return client.Preconditions{UID: &uid}
	}
	return client.Preconditions{UID: &uid, ResourceVersion: &version}
}

// deleteNode removes the Node of a machine that is gone. A cluster that is being deleted needs no tidying up.
func (r *Reconciler) deleteNode(ctx context.Context, s *snapshot) (*waiting, error) {
	if s.clusterGoing() || s.lastControlPlane || (s.node == nil && s.connection != nil && s.nodeErr == nil) {
		return nil, nil
	}
	if s.node == nil && s.nodeBefore == "" && s.nodeErr == nil {
		return nil, nil // There never was one, as far as we know, and nobody to ask.
	}
	err := s.nodeErr
	if s.connection == nil {
		err = fmt.Errorf("the workload cluster does not answer: %s", s.health.Cause())
	}
	if err == nil {
		uid := s.node.UID
		err = client.IgnoreNotFound(s.connection.Client.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.node.Name}}, client.Preconditions{UID: &uid}))
		if err == nil {
			return nil, nil
		}
	}
	left, limited := timeLeft(s.machine.Spec.Deletion.NodeDeletionTimeoutSeconds, s.machine.DeletionTimestamp.Time, s.now)
	if limited && left <= 0 {
		// It is the last step. A cache that still shows the Machine does not make it be given up, and told, twice.
		there, liveErr := r.stillOurs(ctx, s.machine)
		if there {
			r.Recorder.Eventf(s.machine, nil, "Warning", "NodeDeletionTimeout", "DeleteNode",
				"Gave up deleting the Node after nodeDeletionTimeoutSeconds: %v", err)
		}
		return nil, liveErr
	}
	return &waiting{
		reason:  clusterv1.MachineDeletingDeletingNodeReason,
		message: fmt.Sprintf("Node %s cannot be deleted yet: %v", s.machine.Status.NodeRef.Name, err),
		after:   earliest(max(left, 0), retryWait(s.now.Sub(s.machine.DeletionTimestamp.Time))),
	}, nil
}

// stillOurs tells whether the API server holds the Machine with our finalizer.
func (r *Reconciler) stillOurs(ctx context.Context, machine *clusterv1.Machine) (bool, error) {
	live := &clusterv1.Machine{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(machine), live); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return live.UID == machine.UID && controllerutil.ContainsFinalizer(live, clusterv1.MachineFinalizer), nil
}

// isLastControlPlane tells whether no other control-plane machine of the cluster would stay: with this one its API server
// goes, and there is nobody to evict pods or delete Nodes.
func (r *Reconciler) isLastControlPlane(ctx context.Context, machine *clusterv1.Machine) (bool, error) {
	if _, ok := machine.Labels[clusterv1.MachineControlPlaneLabel]; !ok {
		return false, nil
	}
	list := &clusterv1.MachineList{}
	err := r.Client.List(ctx, list, client.InNamespace(machine.Namespace), client.HasLabels{clusterv1.MachineControlPlaneLabel},
		client.MatchingLabels{clusterv1.ClusterNameLabel: machine.Spec.ClusterName})
	if err != nil {
		return false, fmt.Errorf("list the control-plane Machines of Cluster %q: %w", machine.Spec.ClusterName, err)
	}
	return !slices.ContainsFunc(list.Items, func(other clusterv1.Machine) bool {
		return other.Name != machine.Name && other.DeletionTimestamp.IsZero()
	}), nil
}

// hooksOf returns the annotations of a Machine that are hooks of one kind, sorted.
func hooksOf(machine *clusterv1.Machine, prefix string) []string {
	var out []string
	for key := range machine.Annotations {
		if strings.HasPrefix(key, prefix) {
			out = append(out, key)
		}
	}
	slices.Sort(out)
	return out
}

// waitedFor tells whether the deletion stood at a step when the Machine was read: a step that is given up is announced by
// the reconcile that leaves it, not by each that passes it.
func waitedFor(s *snapshot, reason string) bool {
	have := conditions.Get(s.machine, clusterv1.MachineDeletingCondition)
	return have != nil && have.Reason == reason
}

// begin notes when a wait began.
func begin(at *metav1.Time, now time.Time) {
	if at.IsZero() {
		*at = metav1.NewTime(now.Truncate(time.Second))
	}
}

// timeLeft returns what is left of a timeout in seconds; limited is false when it is unset or 0, which means for ever.
func timeLeft(seconds *int32, since, now time.Time) (left time.Duration, limited bool) {
	if seconds == nil || *seconds <= 0 {
		return 0, false
	}
	return time.Duration(*seconds)*time.Second - now.Sub(since), true
}

// retryWait is the pause before something is tried again that no watch reports: a quarter of the time that has passed,
// between half a second and five seconds. It needs no counter, so it survives a restart.
func retryWait(passed time.Duration) time.Duration {
	return min(max(passed/4, 500*time.Millisecond), 5*time.Second)
}
