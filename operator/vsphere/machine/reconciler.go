package machine

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	infrav1 "github.com/millwright-dev/millwright/api/infrastructure/v1beta2"
	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/contract"
	"github.com/millwright-dev/millwright/internal/patch"
	"github.com/millwright-dev/millwright/internal/vcenter"
	"github.com/millwright-dev/millwright/operator/vsphere/identity"
)

// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=vspheremachines,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=vspheremachines/status,verbs=patch
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=vspheremachines/finalizers,verbs=update
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=vsphereclusters;vspheredeploymentzones;vspherefailuredomains,verbs=get;list;watch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters;machines,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconciler keeps VSphereMachines.
type Reconciler struct {
	Client client.Client
	// Live reads past the cache.
	Live     client.Reader
	Sessions *vcenter.Pool
	// Namespace is the operator's own, where the Secrets of VSphereClusterIdentities are.
	Namespace string
	Recorder  events.EventRecorder

	news      *patch.Unhurried
	unwritten unwritten
	begun     begun
}

// stationDelay is how long the stations of a machine on its way may go unwritten; most are over sooner. stationEach is added
// for each that is on its way, so that however many there are, they write at most twenty a second.
const (
	stationDelay = 5 * time.Second
	stationEach  = 50 * time.Millisecond
)

// scope is one VSphereMachine and what belongs to it.
type scope struct {
	machine *infrav1.VSphereMachine
	owner   *clusterv1.Machine
	cluster *clusterv1.Cluster
	helper  *patch.Helper
	// told is the reason that VirtualMachineProvisioned gave before this reconcile.
	told string

	session *vcenter.Session
	// spec is the clone specification with the failure domain's in place of the machine's.
	spec infrav1.VirtualMachineCloneSpec
	zone *zone
	// config is how the virtual machine is to be, once it is known.
	config *vcenter.Config
}

// key is the name under which the session keeps tasks and watches of the machine.
func (s *scope) key() string { return identity.Key(s.machine) }

// Reconcile brings one VSphereMachine a step further. A failure is in its conditions, and is tried again with a growing
// pause; mending what is at fault in vCenter is found by such a try, everything else by an event.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	machine := &infrav1.VSphereMachine{}
	if err := r.Client.Get(ctx, req.NamespacedName, machine); err != nil {
		if apierrors.IsNotFound(err) {
			r.news.Forget(req.NamespacedName)
			r.unwritten.forget(req.NamespacedName)
			machine = r.begun.missing(req.NamespacedName, time.Now())
		}
		if machine == nil || !apierrors.IsNotFound(err) {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
	} else if !machine.DeletionTimestamp.IsZero() {
		// Live: the cache may not hold yet that we asked for a clone, and the finalizer would come off with it running.
		live := &infrav1.VSphereMachine{}
		switch err := r.Live.Get(ctx, req.NamespacedName, live); {
		case err == nil:
			machine = live
		case apierrors.IsNotFound(err):
			r.begun.forget(req.NamespacedName)
			return ctrl.Result{}, nil
		default:
			return ctrl.Result{}, err
		}
	}
	s, err := r.scopeOf(ctx, machine)
	if err != nil {
		return ctrl.Result{}, err
	}
	r.begun.seen(req.NamespacedName, contract.Paused(s.cluster, machine), time.Now())
	conditions.Set(machine, contract.PausedCondition(s.cluster, machine))
	if contract.Paused(s.cluster, machine) {
		return ctrl.Result{}, r.news.PatchNow(ctx, s.helper, machine)
	}

	before := conditions.Get(machine, infrav1.VirtualMachineProvisionedCondition)
	if before != nil {
		s.told = before.Reason
	}
	var again time.Duration
	if machine.DeletionTimestamp.IsZero() {
		again, err = r.reconcileNormal(ctx, s)
	} else {
		again, err = r.reconcileDelete(ctx, s)
	}
	if err != nil {
		setError(machine, err)
	}
	r.tell(machine, before)
	unwritten, patchErr := r.write(ctx, s, err != nil)
	if err := errors.Join(err, patchErr); err != nil {
		return ctrl.Result{}, err
	}
	if again == 0 || unwritten > 0 && unwritten < again {
		again = unwritten
	}
	// Only steps that no event ends ask to be looked at again; each says why.
	return ctrl.Result{RequeueAfter: again}, nil
}

// write stores the machine. The status of one on its way may wait, for the result's time; news of failures may not.
func (r *Reconciler) write(ctx context.Context, s *scope, failed bool) (time.Duration, error) {
	m := s.machine
	if failed || !m.DeletionTimestamp.IsZero() || isTrue(m.Status.Initialization.Provisioned) {
		return 0, r.news.PatchNow(ctx, s.helper, m)
	}
	left, err := r.news.Patch(ctx, s.helper, m)
	if left > 0 {
		r.unwritten.keep(m)
	}
	return left, err
}

func (r *Reconciler) scopeOf(ctx context.Context, machine *infrav1.VSphereMachine) (*scope, error) {
	s := &scope{machine: machine, helper: patch.New(machine, r.Client), spec: machine.Spec.VirtualMachineCloneSpec}
	r.unwritten.restore(machine)
	err := restoreClone(machine)
	if err != nil {
		return nil, err
	}
	if s.owner, err = contract.OwnerMachine(ctx, r.Client, machine); client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	if s.cluster, err = contract.ClusterOf(ctx, r.Client, machine); client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	return s, nil
}

// waitingFor says what a machine waits for before anything is done in vCenter; nil when for nothing.
func waitingFor(s *scope) *step {
	if isTrue(s.machine.Status.Initialization.Provisioned) {
		return nil
	}
	if !isTrue(s.cluster.Status.Initialization.InfrastructureProvisioned) {
		return &step{action: wait, reason: infrav1.WaitingForClusterInfrastructureReadyReason,
			message: fmt.Sprintf("waiting for the infrastructure of Cluster %q", s.cluster.Name)}
	}
	if s.owner.Spec.Bootstrap.DataSecretName == nil {
		return &step{action: wait, reason: infrav1.WaitingForBootstrapDataReason,
			message: fmt.Sprintf("waiting for the bootstrap data of Machine %q", s.owner.Name)}
	}
	return nil
}

func (r *Reconciler) reconcileNormal(ctx context.Context, s *scope) (time.Duration, error) {
	if s.owner == nil || s.cluster == nil {
		// Not yet anybody's machine; its owner comes with an event.
		return 0, nil
	}
	if !untouched(recorded(s.machine)) {
		// Of a new machine it is stored together with the clone's record, before anything is made that it must guard.
		controllerutil.AddFinalizer(s.machine, infrav1.MachineFinalizer)
	}
	if step := waitingFor(s); step != nil {
		setStep(s.machine, *step)
		return 0, nil
	}
	if err := r.connect(ctx, s); err != nil {
		return 0, err
	}
	if fields := unsupported(s.spec, s.zone); len(fields) > 0 && s.machine.Spec.ProviderID == "" {
		return 0, problem(infrav1.UnsupportedFieldReason, "not supported: %s: remove it from the VSphereMachineTemplate", list(fields))
	}
	seen, err := r.observe(ctx, s)
	if err != nil {
		return 0, err
	}
	step := next(seen)
	setStep(s.machine, step)
	return r.act(ctx, s, seen, step)
}

func (r *Reconciler) reconcileDelete(ctx context.Context, s *scope) (time.Duration, error) {
	if !controllerutil.ContainsFinalizer(s.machine, infrav1.MachineFinalizer) {
		return 0, nil
	}
	if untouched(recorded(s.machine)) {
		// It goes without a vCenter, and also where there is none.
		controllerutil.RemoveFinalizer(s.machine, infrav1.MachineFinalizer)
		return 0, nil
	}
	if err := r.connect(ctx, s); err != nil {
		return 0, fmt.Errorf("the virtual machine cannot be deleted: %w", err)
	}
	seen, err := r.observe(ctx, s)
	if err != nil {
		return 0, err
	}
	step := nextDeletion(seen)
	if step.action != finish {
		setStep(s.machine, step)
	}
	return r.act(ctx, s, seen, step)
}
