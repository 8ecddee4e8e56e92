package upgrade

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	addonsv1 "github.com/millwright-dev/millwright/api/addons/v1alpha1"
	lifecyclev1 "github.com/millwright-dev/millwright/api/lifecycle/v1alpha1"
	"github.com/millwright-dev/millwright/internal/contract"
	"github.com/millwright-dev/millwright/internal/contract/watches"
)

// SetupWithManager registers the controller and what it watches: upgrades, and the Clusters, control planes,
// MachineDeployments, Machines and add-ons of those that are under way.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, opts controller.Options) error {
	if r.Now == nil {
		r.Now = time.Now
	}
	r.resolver = &contract.Resolver{Client: r.Client}
	ofCluster := handler.EnqueueRequestsFromMapFunc(r.underWay)
	c, err := ctrl.NewControllerManagedBy(mgr).
		Named("clusterupgrade").
		WithOptions(opts).
		For(&lifecyclev1.ClusterUpgrade{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		Watches(&clusterv1.Cluster{}, ofCluster).
		Watches(&clusterv1.MachineDeployment{}, ofCluster).
		Watches(&clusterv1.Machine{}, ofCluster).
		Watches(&addonsv1.AddonRelease{}, ofCluster).
		WatchesRawSource(r.Workload.ClusterEventsTo(func(ctx context.Context, cluster client.ObjectKey) []reconcile.Request {
			return r.upgradesOf(ctx, cluster)
		})).
		Build(r)
	if err != nil {
		return err
	}
	r.watcher = watches.New(c, mgr)
	return nil
}

// watch adds the kind of a control plane.
func (r *Reconciler) watch(gvk schema.GroupVersionKind) error {
	return r.watcher.Watch(gvk, handler.EnqueueRequestsFromMapFunc(r.underWay))
}

// underWay finds the upgrades that an object of a cluster is news for.
func (r *Reconciler) underWay(ctx context.Context, obj client.Object) []reconcile.Request {
	name := obj.GetLabels()[clusterv1.ClusterNameLabel]
	if _, ok := obj.(*clusterv1.Cluster); ok {
		name = obj.GetName()
	}
	if release, ok := obj.(*addonsv1.AddonRelease); ok {
		name = release.Spec.ClusterName
	}
	return r.upgradesOf(ctx, client.ObjectKey{Namespace: obj.GetNamespace(), Name: name})
}

func (r *Reconciler) upgradesOf(ctx context.Context, cluster client.ObjectKey) []reconcile.Request {
	list := &lifecyclev1.ClusterUpgradeList{}
	if err := r.Client.List(ctx, list, client.InNamespace(cluster.Namespace)); err != nil {
		log.FromContext(ctx).Error(err, "An event of a cluster reaches no upgrade", "cluster", cluster)
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if u := &list.Items[i]; u.Spec.ClusterName == cluster.Name && !u.Status.Phase.Over() {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(u)})
		}
	}
	return requests
}
