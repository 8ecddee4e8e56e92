package machine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kubectldrain "k8s.io/kubectl/pkg/drain"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/drain"
)

// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machinedrainrules,verbs=get;list;watch

// drain cordons the Node and evicts its pods as the MachineDrainRules ask, one pass a reconcile: it never blocks on a
// pod.
func (r *Reconciler) drain(ctx context.Context, s *snapshot) (*waiting, error) {
	status := s.machine.Status.Deletion
	if skipDrain(s) {
		return nil, nil
	}
	begin(&status.NodeDrainStartTime, s.now)
	left, limited := timeLeft(s.machine.Spec.Deletion.NodeDrainTimeoutSeconds, status.NodeDrainStartTime.Time, s.now)
	if limited && left <= 0 {
		if waitedFor(s, clusterv1.MachineDeletingDrainingNodeReason) {
			r.Recorder.Eventf(s.machine, nil, "Warning", "NodeDrainTimeout", "Drain", "Gave up draining after nodeDrainTimeoutSeconds")
		}
		return nil, nil
	}
	wait := func(message string, after time.Duration) *waiting {
		return &waiting{reason: clusterv1.MachineDeletingDrainingNodeReason, message: message, after: earliest(max(left, 0), after)}
	}
	if s.connection == nil {
		return wait(unreachableMessage(s, "drain", clusterv1.ExcludeNodeDrainingAnnotation), 0), nil
	}
	if s.nodeErr != nil {
		return nil, s.nodeErr
	}

	rules, err := r.drainRules(ctx, s)
	if err != nil {
		return nil, err
	}
	applying, err := drain.RulesFor(s.machine, s.cluster, rules)
	if err != nil {
		// Trying again does not heal it; the watch of the rules tells when somebody has.
		return wait(err.Error(), 0), nil
	}
	helper := &kubectldrain.Helper{
		Ctx:                ctx,
		Client:             s.connection.Clientset,
		Force:              true, // pods without a controller go too: the machine goes
		GracePeriodSeconds: -1,   // each pod's own
		// DaemonSets bring their pods back at once, static pods are not the API server's to delete.
		IgnoreAllDaemonSets: true,
		DeleteEmptyDirData:  true,
		Out:                 io.Discard,
		ErrOut:              io.Discard,
	}
	if unreachableFor(s.node, s.now) > 0 {
		drain.ForSilentKubelet(helper)
	}
	if err := cordon(ctx, helper, s.node); err != nil {
		return nil, fmt.Errorf("cordon Node %q of Machine %q: %w", s.node.Name, s.machine.Name, err)
	}
	progress, err := drain.Pass(ctx, helper, s.node.Name, applying)
	if err != nil {
		return nil, fmt.Errorf("drain Machine %q: %w", s.machine.Name, err)
	}
	if progress.Done() {
		return nil, nil
	}
	started := status.NodeDrainStartTime.Time
	return wait(drainMessage(progress, started), retryWait(s.now.Sub(started))), nil
}

// drainRules reads the rules of the Machine's namespace.
func (r *Reconciler) drainRules(ctx context.Context, s *snapshot) ([]clusterv1.MachineDrainRule, error) {
	list := &clusterv1.MachineDrainRuleList{}
	if err := r.Client.List(ctx, list, client.InNamespace(s.machine.Namespace)); err != nil {
		return nil, fmt.Errorf("list the MachineDrainRules of namespace %q: %w", s.machine.Namespace, err)
	}
	return list.Items, nil
}

// cordon writes only when the Node is not cordoned yet.
func cordon(ctx context.Context, helper *kubectldrain.Helper, node *corev1.Node) error {
	c := kubectldrain.NewCordonHelper(node.DeepCopy())
	if !c.UpdateIfRequired(true) {
		return nil
	}
	err, patchErr := c.PatchOrReplaceWithContext(ctx, helper.Client, false)
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return errors.Join(err, patchErr)
}
