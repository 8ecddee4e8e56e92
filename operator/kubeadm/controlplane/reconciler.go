package controlplane

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/contract"
	"github.com/millwright-dev/millwright/internal/contract/watches"
	"github.com/millwright-dev/millwright/internal/patch"
	"github.com/millwright-dev/millwright/internal/workload"
	"github.com/millwright-dev/millwright/operator/kubeadm/certificates"
)

// Kinds of other providers are granted by their own ClusterRoles, which the operator's aggregated role takes in.
//
// +kubebuilder:rbac:groups=controlplane.cluster.x-k8s.io,resources=kubeadmcontrolplanes,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=controlplane.cluster.x-k8s.io,resources=kubeadmcontrolplanes/status,verbs=patch
// +kubebuilder:rbac:groups=controlplane.cluster.x-k8s.io,resources=kubeadmcontrolplanes/finalizers,verbs=update
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters,verbs=get;list;watch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machines,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machines/status,verbs=patch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machines/finalizers,verbs=update
// +kubebuilder:rbac:groups=bootstrap.cluster.x-k8s.io,resources=kubeadmconfigs,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=vspheremachines,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=vspheremachinetemplates,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

const (
	// retryInput is how soon we look again for Secrets that the user has to provide: those without the
	// cluster's label are not watched.
	retryInput = 10 * time.Second
	// doubtFor is how long a single component that cannot be read keeps the state it was last seen in.
	doubtFor = 10 * time.Second
	// settleFor is how long an operator that has just started may take to connect to an initialized control plane.
	settleFor = 30 * time.Second
)

// Reconciler reconciles KubeadmControlPlanes.
type Reconciler struct {
	Client client.Client
	// Live reads past the cache: what is deleted is decided on what the API server holds.
	Live     client.Reader
	Workload *workload.Pool
	Recorder events.EventRecorder
	// Now is the clock; time.Now when nil.
	Now func() time.Time

	resolver     *contract.Resolver
	watcher      *watches.Watcher
	certificates *certificates.Store
	dial         dialMember
	readExpiry   readExpiry
	readings     readings
	doubts       doubts
	finished     finishes
}

// Reconcile brings one control plane a step further.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	controlPlane := &controlplanev1.KubeadmControlPlane{}
	if err := r.Client.Get(ctx, req.NamespacedName, controlPlane); err != nil {
		if apierrors.IsNotFound(err) {
			// Also one whose finalizer somebody else removed.
			r.doubts.forget(req.NamespacedName)
			r.finished.forget(req.NamespacedName)
			r.readings.forget(req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	cluster, err := r.clusterOf(ctx, controlPlane)
	if cluster == nil || err != nil {
		return ctrl.Result{}, err
	}
	helper := patch.New(controlPlane, r.Client)
	conditions.Set(controlPlane, contract.PausedCondition(cluster, controlPlane))
	if contract.Paused(cluster, controlPlane) {
		return ctrl.Result{}, helper.Patch(ctx, controlPlane)
	}
	if controlPlane.DeletionTimestamp.IsZero() {
		// Stored before the first Machine is: the finalizer guards it.
		setDefaults(controlPlane, cluster)
		if err := helper.Patch(ctx, controlPlane); err != nil {
			return ctrl.Result{}, err
		}
	}

	s, err := r.snapshot(ctx, controlPlane, cluster)
	if err != nil {
		return ctrl.Result{}, err
	}
	var told report
	var again time.Duration
	if controlPlane.DeletionTimestamp.IsZero() {
		told, again, err = r.reconcile(ctx, s, helper)
	} else {
		told, err = r.delete(ctx, s)
	}
	setStatus(s, told)
	if err := errors.Join(err, helper.Patch(ctx, controlPlane)); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: again}, nil
}

// clusterOf returns the Cluster of a control plane; nil while there is none, which is an event. One
// that is gone before its control plane leaves at least its name.
func (r *Reconciler) clusterOf(ctx context.Context, cp *controlplanev1.KubeadmControlPlane) (*clusterv1.Cluster, error) {
	cluster, err := contract.ClusterOf(ctx, r.Client, cp)
	if !apierrors.IsNotFound(err) {
		return cluster, err
	}
	if cp.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	return &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: cp.Namespace, Name: cp.Labels[clusterv1.ClusterNameLabel]}}, nil
}

// snapshot reads the control plane's Machines and what belongs to them, all of it from caches.
func (r *Reconciler) snapshot(ctx context.Context, cp *controlplanev1.KubeadmControlPlane, cluster *clusterv1.Cluster) (*snapshot, error) {
	s := &snapshot{now: r.Now(), controlPlane: cp, cluster: cluster}
	machines, err := r.machines(ctx, r.Client, cp, cluster)
	if err != nil {
		return nil, err
	}
	for _, machine := range machines {
		replica := &replica{machine: machine}
		config := &bootstrapv1.KubeadmConfig{}
		key := client.ObjectKey{Namespace: machine.Namespace, Name: machine.Spec.Bootstrap.ConfigRef.Name}
		if err := r.Client.Get(ctx, key, config); err == nil {
			replica.config = config
		} else if !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("get KubeadmConfig %q of Machine %q: %w", key, machine.Name, err)
		}
		replica.infrastructure, err = r.resolver.Get(ctx, machine.Namespace, machine.Spec.InfrastructureRef)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("Machine %q: %w", machine.Name, err)
		}
		s.replicas = append(s.replicas, replica)
	}
	return s, nil
}

// machines returns the Machines of a control plane, oldest first; those that have lost their owner too.
func (r *Reconciler) machines(ctx context.Context, from client.Reader, cp *controlplanev1.KubeadmControlPlane, cluster *clusterv1.Cluster) ([]*clusterv1.Machine, error) {
	list := &clusterv1.MachineList{}
	options := []client.ListOption{client.InNamespace(cp.Namespace), client.MatchingLabelsSelector{Selector: selector(cp, cluster.Name)}}
	if err := from.List(ctx, list, options...); err != nil {
		return nil, fmt.Errorf("list Machines of KubeadmControlPlane %q: %w", client.ObjectKeyFromObject(cp), err)
	}
	var out []*clusterv1.Machine
	for i := range list.Items {
		if owner := metav1.GetControllerOf(&list.Items[i]); owner == nil || owner.UID == cp.UID {
			out = append(out, &list.Items[i])
		}
	}
	slices.SortFunc(out, func(a, b *clusterv1.Machine) int {
		if c := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	return out, nil
}

// reconcile looks, tells the Machines, and carries out the plan. It returns when to look again.
func (r *Reconciler) reconcile(ctx context.Context, s *snapshot, helper *patch.Helper) (report, time.Duration, error) {
	if !ptr.Deref(s.cluster.Status.Initialization.InfrastructureProvisioned, false) {
		return report{waiting: "Waiting for the infrastructure of Cluster " + s.cluster.Name}, 0, nil
	}
	set, err := r.ensureCertificates(ctx, s)
	if err != nil {
		told := report{waiting: "Waiting for certificates", certificates: err}
		if certificates.ForTheUser(err) {
			return told, retryInput, nil
		}
		return told, 0, err
	}
	if !s.cluster.Spec.ControlPlaneEndpoint.IsValid() {
		return report{waiting: "Waiting for spec.controlPlaneEndpoint of Cluster " + s.cluster.Name}, 0, nil
	}
	renew, err := r.ensureKubeconfig(ctx, s, set[certificates.ClusterCA])
	if err != nil {
		return report{waiting: err.Error()}, 0, err
	}

	if s.workload, err = r.inspect(ctx, s, set[certificates.EtcdCA]); err != nil {
		return report{blocked: []string{err.Error()}}, 0, err
	}
	if s.workload.kubeadmConfig && !s.initialized() {
		s.controlPlane.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
		r.Recorder.Eventf(s.controlPlane, nil, corev1.EventTypeNormal, "Initialized", "Initialize", "The control plane of Cluster %s is initialized", s.cluster.Name)
		// Told at once: every other machine of the cluster waits for it.
		setStatus(s, report{})
		if err := helper.Patch(ctx, s.controlPlane); err != nil {
			return report{}, 0, err
		}
	}
	if err := r.tellMachines(ctx, s); err != nil {
		return report{}, 0, err
	}
	told, err := r.act(ctx, s, set[certificates.EtcdCA], helper)
	again := lookAgain(s)
	for _, wait := range []time.Duration{renew, nextRollout(s), told.again, s.workload.readAgain} {
		again = earliest(again, wait)
	}
	return told, again, err
}

// ensureCertificates makes certificates before there is a control plane, and never after.
func (r *Reconciler) ensureCertificates(ctx context.Context, s *snapshot) (certificates.Set, error) {
	config := s.controlPlane.Spec.KubeadmConfigSpec.ClusterConfiguration
	if s.initialized() {
		if _, err := r.certificates.Require(ctx, s.cluster, certificates.Needed(config)); err != nil {
			return nil, err
		}
	}
	owner := *metav1.NewControllerRef(s.controlPlane, controlplanev1.GroupVersion.WithKind("KubeadmControlPlane"))
	return r.certificates.Ensure(ctx, s.cluster, config, owner)
}

// tellMachines writes our conditions on Machines and what they take over in place, and puts back an owner that was lost.
func (r *Reconciler) tellMachines(ctx context.Context, s *snapshot) error {
	inDoubt := r.doubts.young(s, r.Now()) || s.workload.settling > 0
	var errs []error
	for _, replica := range s.replicas {
		errs = append(errs, r.keepObjectsUp(ctx, s, replica))
		helper := patch.New(replica.machine, r.Client)
		keepUp(s, replica.machine)
		setExpiry(replica.machine, s.workload.expiries[replica.machine.Name])
		for _, condition := range machineConditions(s, replica) {
			if have := conditions.Get(replica.machine, condition.Type); inDoubt && have != nil && condition.Status == metav1.ConditionUnknown {
				continue
			}
			conditions.Set(replica.machine, condition)
		}
		conditions.Set(replica.machine, upToDate(s, replica))
		if metav1.GetControllerOf(replica.machine) == nil && !replica.deleting() {
			replica.machine.OwnerReferences = append(replica.machine.OwnerReferences,
				*metav1.NewControllerRef(s.controlPlane, controlplanev1.GroupVersion.WithKind("KubeadmControlPlane")))
		}
		if err := helper.Patch(ctx, replica.machine); client.IgnoreNotFound(err) != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func earliest(a, b time.Duration) time.Duration {
	switch {
	case a == 0:
		return b
	case b == 0:
		return a
	}
	return min(a, b)
}
