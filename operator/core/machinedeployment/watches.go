package machinedeployment

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/millwright-dev/millwright/internal/contract"
	"github.com/millwright-dev/millwright/internal/contract/watches"
	"github.com/millwright-dev/millwright/internal/patch"
)

// SetupWithManager registers the controller and what it watches: deployments, their sets, Clusters for pause and
// creation, and infrastructure templates. Machines are not watched: what matters of them moves the status of their set.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, opts controller.Options) error {
	r.resolver = contract.Resolver{Client: r.Client}
	r.news = &patch.Unhurried{Delay: countersDelay}
	c, err := ctrl.NewControllerManagedBy(mgr).
		Named("machinedeployment").
		WithOptions(opts).
		For(&clusterv1.MachineDeployment{}).
		Watches(&clusterv1.MachineSet{}, handler.EnqueueRequestsFromMapFunc(r.fromSet)).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.fromCluster), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Build(r)
	if err != nil {
		return err
	}
	r.watcher = watches.New(c, mgr)
	return nil
}

// fromSet maps a set to the deployment that controls it, an orphan to the deployments that would adopt it.
func (r *Reconciler) fromSet(ctx context.Context, obj client.Object) []reconcile.Request {
	if owner := metav1.GetControllerOf(obj); owner != nil {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: obj.GetNamespace(), Name: owner.Name}}}
	}
	return r.deployments(ctx, obj.GetNamespace(), func(deployment *clusterv1.MachineDeployment) bool {
		selector, err := metav1.LabelSelectorAsSelector(&deployment.Spec.Selector)
		return err == nil && !selector.Empty() && selector.Matches(labels.Set(obj.GetLabels()))
	})
}

func (r *Reconciler) fromCluster(ctx context.Context, obj client.Object) []reconcile.Request {
	return r.deployments(ctx, obj.GetNamespace(), func(deployment *clusterv1.MachineDeployment) bool {
		return deployment.Spec.ClusterName == obj.GetName()
	})
}

// deployments returns requests for the deployments of a namespace that concern returns true for.
func (r *Reconciler) deployments(ctx context.Context, namespace string, concerns func(*clusterv1.MachineDeployment) bool) []reconcile.Request {
	return contract.RequestsFor(ctx, r.Client, &clusterv1.MachineDeploymentList{}, namespace, concerns)
}
