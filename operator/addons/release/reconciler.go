package release

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	addonsv1 "github.com/millwright-dev/millwright/api/addons/v1alpha1"
	"github.com/millwright-dev/millwright/internal/bundle"
	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/contract"
	"github.com/millwright-dev/millwright/internal/contract/watches"
	"github.com/millwright-dev/millwright/internal/members"
	"github.com/millwright-dev/millwright/internal/patch"
	"github.com/millwright-dev/millwright/internal/workload"
)

// +kubebuilder:rbac:groups=addons.millwright.dev,resources=addonreleases,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=addons.millwright.dev,resources=addonreleases/status,verbs=patch
// +kubebuilder:rbac:groups=addons.millwright.dev,resources=addons,verbs=get;list;watch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters,verbs=get;list;watch
// +kubebuilder:rbac:groups=controlplane.cluster.x-k8s.io,resources=kubeadmcontrolplanes,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconciler brings bundles to clusters.
type Reconciler struct {
	Client client.Client
	// Live reads past the cache: before anything is uninstalled, no Addon that was just made must be overlooked.
	Live      client.Reader
	Workload  *workload.Pool
	Recorder  events.EventRecorder
	Catalogue *bundle.Catalogue
	Fetcher   *bundle.Fetcher
	Now       func() time.Time

	resolver *contract.Resolver
	watcher  *watches.Watcher
	follower *members.Follower
	memory   *memory
	places   *places
	renders  *renders
}

// Reconcile brings one bundle on one cluster closer to what is asked for, and tells how it is.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	release := &addonsv1.AddonRelease{}
	if err := r.Client.Get(ctx, req.NamespacedName, release); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	cluster, err := r.cluster(ctx, release)
	if err != nil {
		return ctrl.Result{}, err
	}
	helper := patch.New(release, r.Client)
	if !release.DeletionTimestamp.IsZero() {
		return r.finalize(ctx, release, cluster, helper)
	}
	switch {
	case cluster == nil:
		r.forget(req.NamespacedName)
		conditions.Set(release, conditions.Unknown(addonsv1.ReadyCondition, addonsv1.ClusterNotFoundReason,
			"there is no Cluster %q in namespace %q", release.Spec.ClusterName, release.Namespace))
		return ctrl.Result{}, helper.Patch(ctx, release)
	case !cluster.DeletionTimestamp.IsZero():
		// What is installed goes with the cluster.
		return ctrl.Result{}, nil
	case paused(release, cluster):
		conditions.Set(release, conditions.Unknown(addonsv1.ReadyCondition, addonsv1.PausedReason, "nothing is applied or corrected while it is paused"))
		return ctrl.Result{}, helper.Patch(ctx, release)
	}
	if controllerutil.AddFinalizer(release, addonsv1.AddonReleaseFinalizer) {
		// Stored before anything is installed, which it must outlive.
		if err := helper.Patch(ctx, release); err != nil {
			return ctrl.Result{}, err
		}
	}
	found, reconcileErr := r.reconcile(ctx, release, cluster)
	wake := setStatus(release, found, r.Now())
	if err := errors.Join(reconcileErr, helper.Patch(ctx, release)); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: wake}, nil
}

// reconcile finds out what the cluster shall have, and brings it there where it is not.
func (r *Reconciler) reconcile(ctx context.Context, release *addonsv1.AddonRelease, cluster *clusterv1.Cluster) (report, error) {
	key, clusterKey := client.ObjectKeyFromObject(release), client.ObjectKeyFromObject(cluster)
	connection, err := r.Workload.Get(ctx, clusterKey)
	if err != nil {
		r.forget(key)
		if errors.Is(err, workload.ErrNotConnected) {
			return report{unreachable: r.unreachable(clusterKey)}, nil
		}
		return report{}, err
	}
	known := r.memory.get(key)
	if known != nil && known.connection != connection {
		known = nil
	}
	s, found, err := r.snapshot(ctx, release, cluster, connection, known)
	if err != nil || s == nil {
		return found, err
	}
	moved, planned := s.news(r.follower)
	if planned {
		return r.bring(ctx, s, found)
	}
	if len(moved) > 0 {
		if s.known, err = r.look(ctx, s, moved); err != nil {
			return found, err
		}
		r.memory.put(key, clusterKey, s.known)
		if s.mayPrune() {
			return r.bring(ctx, s, found)
		}
	}
	return found.with(s.known), nil
}

// cluster returns the Cluster of a release; nil when there is none.
func (r *Reconciler) cluster(ctx context.Context, release *addonsv1.AddonRelease) (*clusterv1.Cluster, error) {
	cluster := &clusterv1.Cluster{}
	key := client.ObjectKey{Namespace: release.Namespace, Name: release.Spec.ClusterName}
	err := r.Client.Get(ctx, key, cluster)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get Cluster %q of AddonRelease %q: %w", key, release.Name, err)
	}
	return cluster, nil
}

func paused(release *addonsv1.AddonRelease, cluster *clusterv1.Cluster) bool {
	return ptr.Deref(release.Spec.Paused, false) || contract.Paused(cluster, release)
}

// unreachable says, in words that stay the same while the cause does, why a cluster does not answer.
func (r *Reconciler) unreachable(cluster client.ObjectKey) string {
	if cause := r.Workload.Health(cluster).Cause(); cause != "" {
		return fmt.Sprintf("the workload cluster does not answer: %s", cause)
	}
	return "the workload cluster does not answer yet"
}

// forget drops what is known of a release, and the watches of a cluster of which nothing is known any more.
func (r *Reconciler) forget(release client.ObjectKey) {
	for _, cluster := range r.memory.forget(release) {
		if len(r.memory.ofCluster(cluster)) == 0 {
			r.follower.Forget(cluster)
			r.places.forget(cluster)
		}
	}
}
