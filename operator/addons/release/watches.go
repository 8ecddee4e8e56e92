package release

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	addonsv1 "github.com/millwright-dev/millwright/api/addons/v1alpha1"
	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/contract"
	"github.com/millwright-dev/millwright/internal/contract/watches"
	"github.com/millwright-dev/millwright/internal/members"
)

// SetupWithManager registers the controller and what it watches: releases, their Clusters and control planes, the
// connections to workload clusters, and the installed objects there.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, opts controller.Options) error {
	if r.Now == nil {
		r.Now = time.Now
	}
	r.resolver = &contract.Resolver{Client: r.Client}
	r.memory, r.places, r.renders = newMemory(), &places{clusters: map[client.ObjectKey]place{}}, newRenders()
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &addonsv1.AddonRelease{}, indexCluster, func(obj client.Object) []string {
		return []string{obj.(*addonsv1.AddonRelease).Spec.ClusterName}
	}); err != nil {
		return err
	}
	asked := predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{})
	c, err := ctrl.NewControllerManagedBy(mgr).
		Named("addonrelease").
		WithOptions(opts).
		For(&addonsv1.AddonRelease{}, builder.WithPredicates(asked)).
		Watches(&addonsv1.AddonRelease{}, handler.EnqueueRequestsFromMapFunc(r.neighbours), builder.WithPredicates(readinessChanged)).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.ofCluster), builder.WithPredicates(asked)).
		WatchesRawSource(r.Workload.ClusterEventsTo(r.requestsOf)).
		WatchesRawSource(source.Func(r.follow)).
		Build(r)
	if err != nil {
		return err
	}
	r.watcher = watches.New(c, mgr)
	return nil
}

// follow begins to take news of installed objects, until ctx ends.
func (r *Reconciler) follow(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	r.follower = members.NewFollower(
		func(change members.Change) {
			release, known := r.memory.owner(change.Cluster, change.Membership)
			if known != nil && known.news(change.ID, change.State) != noNews {
				queue.Add(reconcile.Request{NamespacedName: release})
			}
		},
		func(cluster client.ObjectKey) {
			// An object that was deleted before the watch began shows only now that it is not there.
			for release, known := range r.memory.ofCluster(cluster) {
				for _, member := range known.record.Members {
					if state, seen := r.follower.Get(cluster, member.ID); seen && known.news(member.ID, state) != noNews {
						queue.Add(reconcile.Request{NamespacedName: release})
						break
					}
				}
			}
		})
	context.AfterFunc(ctx, r.follower.Close)
	return nil
}

// watch adds the kind of a control plane, of which only the version is news.
func (r *Reconciler) watch(gvk schema.GroupVersionKind) error {
	return r.watcher.Watch(gvk, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []reconcile.Request {
		return r.requestsOf(ctx, client.ObjectKey{Namespace: obj.GetNamespace(), Name: obj.GetLabels()[clusterv1.ClusterNameLabel]})
	}), predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok1 := e.ObjectOld.(*unstructured.Unstructured)
		after, ok2 := e.ObjectNew.(*unstructured.Unstructured)
		return !ok1 || !ok2 || contract.StatusVersion(before) != contract.StatusVersion(after)
	}})
}

// ofCluster finds the releases of a Cluster.
func (r *Reconciler) ofCluster(ctx context.Context, obj client.Object) []reconcile.Request {
	return r.requestsOf(ctx, client.ObjectKeyFromObject(obj))
}

// neighbours finds the other releases of a release's cluster: they may have waited for it.
func (r *Reconciler) neighbours(ctx context.Context, obj client.Object) []reconcile.Request {
	release, ok := obj.(*addonsv1.AddonRelease)
	if !ok {
		return nil
	}
	var requests []reconcile.Request
	for _, request := range r.requestsOf(ctx, client.ObjectKey{Namespace: release.Namespace, Name: release.Spec.ClusterName}) {
		if request.Name != release.Name {
			requests = append(requests, request)
		}
	}
	return requests
}

func (r *Reconciler) requestsOf(ctx context.Context, cluster client.ObjectKey) []reconcile.Request {
	releases, err := r.releasesOn(ctx, cluster)
	if err != nil {
		log.FromContext(ctx).Error(err, "An event of a cluster reaches no AddonRelease", "cluster", cluster)
		return nil
	}
	var requests []reconcile.Request
	for i := range releases {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&releases[i])})
	}
	return requests
}

// readinessChanged lets by what other releases of the cluster may wait for: one that became ready, or is gone.
var readinessChanged = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok1 := e.ObjectOld.(*addonsv1.AddonRelease)
		after, ok2 := e.ObjectNew.(*addonsv1.AddonRelease)
		return ok1 && ok2 && settled(before) != settled(after)
	},
}

func settled(release *addonsv1.AddonRelease) bool {
	return conditions.IsTrue(release, addonsv1.AppliedCondition) && conditions.IsTrue(release, addonsv1.HealthyCondition) &&
		release.Status.ObservedGeneration == release.Generation
}
