package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/contract"
	"github.com/millwright-dev/millwright/internal/lifecycle"
	"github.com/millwright-dev/millwright/internal/patch"
	"github.com/millwright-dev/millwright/internal/workload"
)

// Kinds of other providers are granted by their own ClusterRoles, which the operator's aggregated role takes in.
//
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters/status,verbs=patch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters/finalizers,verbs=update
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machinedeployments;machinesets;machines,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=vsphereclusters,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=controlplane.cluster.x-k8s.io,resources=kubeadmcontrolplanes,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconciler reconciles Clusters.
type Reconciler struct {
	Client   client.Client
	Workload *workload.Pool
	Recorder events.EventRecorder

	resolver *contract.Resolver
	// watch starts to watch the kind of an object that a Cluster refers to.
	watch func(context.Context, clusterv1.ContractVersionedObjectReference) error
	news  *patch.Unhurried
}

// countersDelay is how long the state of the Cluster's machines may go unwritten: they are many, and each moves it.
const countersDelay = time.Second

// Reconcile brings one Cluster a step further.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	cluster := &clusterv1.Cluster{}
	if err := r.Client.Get(ctx, req.NamespacedName, cluster); err != nil {
		if apierrors.IsNotFound(err) {
			r.news.Forget(req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	helper := patch.New(cluster, r.Client)
	s, err := r.snapshot(ctx, cluster)
	if err != nil {
		return ctrl.Result{}, err
	}

	var requeue time.Duration
	conditions.Set(cluster, contract.PausedCondition(cluster, cluster))
	if !contract.Paused(cluster, cluster) {
		if cluster.DeletionTimestamp.IsZero() {
			err = r.reconcile(ctx, s)
		} else {
			err = r.delete(ctx, s)
		}
		requeue = report(s)
		r.announce(s)
	}
	unwritten, patchErr := r.write(ctx, s, helper)
	if err := errors.Join(err, patchErr); err != nil {
		return ctrl.Result{}, err
	}
	if requeue == 0 || unwritten > 0 && unwritten < requeue {
		requeue = unwritten
	}
	return ctrl.Result{RequeueAfter: requeue}, nil
}

// write stores the Cluster. What its machines move may wait, for the result's time; a step of its own may not.
func (r *Reconciler) write(ctx context.Context, s *snapshot, helper *patch.Helper) (time.Duration, error) {
	before, after := s.before, s.cluster.Status
	if !s.cluster.DeletionTimestamp.IsZero() || before.Phase != after.Phase || before.ObservedGeneration != after.ObservedGeneration ||
		!equality.Semantic.DeepEqual(before.Initialization, after.Initialization) ||
		conditions.IsTrue(&clusterv1.Cluster{Status: before}, clusterv1.ClusterAvailableCondition) != conditions.IsTrue(s.cluster, clusterv1.ClusterAvailableCondition) {
		return 0, r.news.PatchNow(ctx, helper, s.cluster)
	}
	return r.news.Patch(ctx, helper, s.cluster)
}

// reconcile takes over what the Cluster refers to and copies what it reports.
func (r *Reconciler) reconcile(ctx context.Context, s *snapshot) error {
	controllerutil.AddFinalizer(s.cluster, clusterv1.ClusterFinalizer)
	s.cluster.Spec.Topology.Version = lifecycle.NormalizeVersion(s.cluster.Spec.Topology.Version)

	errs := []error{s.infrastructure.failed, s.controlPlane.failed}
	for _, e := range []external{s.infrastructure, s.controlPlane} {
		if e.obj != nil {
			errs = append(errs, contract.Own(ctx, r.Client, e.obj, ownerReference(s.cluster), s.cluster.Name))
		}
	}
	copyInfrastructure(s)
	copyControlPlane(s)
	if mayConnect(s.cluster) {
		// The Pool connects in the background; its events bring us back.
		if _, err := r.Workload.Get(ctx, client.ObjectKeyFromObject(s.cluster)); err != nil && !errors.Is(err, workload.ErrNotConnected) {
			errs = append(errs, err)
		}
		s.health = r.Workload.Health(client.ObjectKeyFromObject(s.cluster))
	}
	return errors.Join(errs...)
}

// announce records events of what this reconcile found out; only on change.
func (r *Reconciler) announce(s *snapshot) {
	status := s.cluster.Status
	for _, change := range []struct {
		before, after *bool
		reason, note  string
	}{
		{s.before.Initialization.InfrastructureProvisioned, status.Initialization.InfrastructureProvisioned, "InfrastructureProvisioned", "The infrastructure is provisioned"},
		{s.before.Initialization.ControlPlaneInitialized, status.Initialization.ControlPlaneInitialized, "ControlPlaneInitialized", "The control plane is initialized"},
	} {
		if !isTrue(change.before) && isTrue(change.after) {
			r.Recorder.Eventf(s.cluster, nil, "Normal", change.reason, "Reconcile", "%s", change.note)
		}
	}
	if status.Phase != s.before.Phase {
		r.Recorder.Eventf(s.cluster, nil, "Normal", status.Phase, "Reconcile", "The Cluster is %s", status.Phase)
	}
}

func ownerReference(cluster *clusterv1.Cluster) metav1.OwnerReference {
	return *metav1.NewControllerRef(cluster, clusterv1.GroupVersion.WithKind(clusterv1.ClusterKind))
}

// describe names an object that a reference points to in messages.
func describe(ref clusterv1.ContractVersionedObjectReference) string {
	return fmt.Sprintf("%s %q", ref.Kind, ref.Name)
}

func isTrue(b *bool) bool {
	return b != nil && *b
}
