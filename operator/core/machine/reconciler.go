package machine

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/contract"
	"github.com/millwright-dev/millwright/internal/patch"
	"github.com/millwright-dev/millwright/internal/workload"
)

// Kinds of other providers are granted by their own ClusterRoles, which the operator's aggregated role takes in.
//
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machines,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machines/status,verbs=patch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machines/finalizers,verbs=update
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters;machinesets;machinedeployments,verbs=get;list;watch
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=vspheremachines,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=bootstrap.cluster.x-k8s.io,resources=kubeadmconfigs,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconciler reconciles Machines.
type Reconciler struct {
	Client client.Client
	// Live reads past the cache: that an object is gone is decided on what the API server holds.
	Live     client.Reader
	Workload *workload.Pool
	Recorder events.EventRecorder

	resolver *contract.Resolver
	// watch starts to watch the kind of an object that a Machine refers to.
	watch func(context.Context, clusterv1.ContractVersionedObjectReference) error
	news  *patch.Unhurried
}

// stationDelay is how long the stations of a Machine without a Node may go unwritten; most are over sooner. stationEach is added
// for each that is on its way, so that however many there are, they write at most twenty a second.
const (
	stationDelay = 5 * time.Second
	stationEach  = 50 * time.Millisecond
)

// Reconcile brings one Machine a step further.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	machine := &clusterv1.Machine{}
	if err := r.Client.Get(ctx, req.NamespacedName, machine); err != nil {
		if apierrors.IsNotFound(err) {
			r.news.Forget(req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	helper := patch.New(machine, r.Client)
	s, err := r.snapshot(ctx, machine)
	if err != nil {
		return ctrl.Result{}, err
	}

	var requeue time.Duration
	conditions.Set(machine, contract.PausedCondition(s.cluster, machine))
	if !contract.Paused(s.cluster, machine) {
		if machine.DeletionTimestamp.IsZero() {
			err = r.reconcile(ctx, s)
		} else {
			requeue, err = r.delete(ctx, s)
		}
		requeue = earliest(requeue, report(s))
		err = errors.Join(err, r.reportUpToDate(ctx, s))
		r.announce(s)
	}
	unwritten, patchErr := r.write(ctx, s, helper)
	if err := errors.Join(err, patchErr); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: earliest(requeue, unwritten)}, nil
}

// write stores the Machine. The status of one on its way may wait, for the result's time.
func (r *Reconciler) write(ctx context.Context, s *snapshot, helper *patch.Helper) (time.Duration, error) {
	m := s.machine
	if !m.DeletionTimestamp.IsZero() || m.Status.NodeRef.IsDefined() || contract.Paused(s.cluster, m) {
		return 0, r.news.PatchNow(ctx, helper, m)
	}
	return r.news.Patch(ctx, helper, m)
}

// reconcile persists defaults, takes over what the Machine refers to, copies what it reports, and keeps the Node.
func (r *Reconciler) reconcile(ctx context.Context, s *snapshot) error {
	applyDefaults(s.machine, s.cluster)
	controllerutil.AddFinalizer(s.machine, clusterv1.MachineFinalizer)
	if s.cluster == nil {
		return nil
	}
	errs := []error{s.bootstrap.failed, s.infrastructure.failed}
	owner := *ownerReference(s.machine)
	for _, e := range []external{s.bootstrap, s.infrastructure} {
		if e.obj != nil {
			errs = append(errs, contract.Own(ctx, r.Client, e.obj, owner, s.machine.Spec.ClusterName, predecessors(s.machine)...))
		}
	}
	copyBootstrap(s)
	copyInfrastructure(s)
	copyNode(s)
	if s.node != nil {
		errs = append(errs, r.syncNode(ctx, s))
	}
	return errors.Join(errs...)
}

// announce records events and metrics of what this reconcile found out; both only on change.
func (r *Reconciler) announce(s *snapshot) {
	if s.nodeBefore == "" && s.machine.Status.NodeRef.IsDefined() {
		r.Recorder.Eventf(s.machine, nil, "Normal", "NodeFound", "FindNode", "Node %s belongs to this Machine", s.machine.Status.NodeRef.Name)
	}
	if phase := s.machine.Status.GetTypedPhase(); phase == clusterv1.MachinePhaseRunning && s.phaseBefore != phase && s.nodeBefore == "" {
		provisioningSeconds.Observe(s.now.Sub(s.machine.CreationTimestamp.Time).Seconds())
	}
}

// predecessors are the owners that a Machine takes its objects over from: who made the Machine made them first.
func predecessors(machine *clusterv1.Machine) []types.UID {
	if maker := metav1.GetControllerOf(machine); maker != nil {
		return []types.UID{maker.UID}
	}
	return nil
}

// earliest returns the shorter of two waits, where zero means no wait.
func earliest(a, b time.Duration) time.Duration {
	switch {
	case a == 0:
		return b
	case b == 0:
		return a
	}
	return min(a, b)
}

// describe names an object that a reference points to in messages.
func describe(ref clusterv1.ContractVersionedObjectReference) string {
	return fmt.Sprintf("%s %q", ref.Kind, ref.Name)
}
