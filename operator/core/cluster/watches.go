package cluster

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

	"github.com/millwright-dev/millwright/internal/contract"
	"github.com/millwright-dev/millwright/internal/contract/watches"
	"github.com/millwright-dev/millwright/internal/patch"
)

// Indexes of the cached Clusters.
const (
	// indexReference finds the Clusters that refer to an object, by group, kind and name.
	indexReference = "millwright/reference"
	// indexKind finds the Clusters that refer to any object of a kind, by the name of its CRD.
	indexKind = "millwright/kind"
)

// SetupWithManager adds the controller to a manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, opts controller.Options) error {
	r.resolver = &contract.Resolver{Client: r.Client}
	r.news = &patch.Unhurried{Delay: countersDelay}
	for index, values := range map[string]client.IndexerFunc{
		indexReference: contract.IndexReferences(referencesOf, contract.ReferenceKey),
		indexKind:      contract.IndexReferences(referencesOf, contract.ReferenceCRD),
	} {
		if err := mgr.GetFieldIndexer().IndexField(context.Background(), &clusterv1.Cluster{}, index, values); err != nil {
			return fmt.Errorf("index Clusters by %s: %w", index, err)
		}
	}
	byLabel := handler.EnqueueRequestsFromMapFunc(clusterOfLabel)
	c, err := ctrl.NewControllerManagedBy(mgr).
		Named("cluster").
		For(&clusterv1.Cluster{}).
		Watches(&clusterv1.MachineDeployment{}, byLabel).
		Watches(&clusterv1.MachineSet{}, byLabel, builder.WithPredicates(standAloneOrGone())).
		Watches(&clusterv1.Machine{}, byLabel, builder.WithPredicates(standAloneOrGone())).
		Watches(contract.CRDMetadata(), handler.EnqueueRequestsFromMapFunc(r.clustersOfCRD), builder.WithPredicates(predicate.LabelChangedPredicate{})).
		WatchesRawSource(r.Workload.ClusterEvents()).
		WithOptions(opts).
		Build(r)
	if err != nil {
		return fmt.Errorf("set up the cluster controller: %w", err)
	}
	watcher := watches.New(c, mgr)
	r.watch = func(ctx context.Context, ref clusterv1.ContractVersionedObjectReference) error {
		gvk, err := r.resolver.GVK(ctx, ref.GroupKind())
		if err != nil {
			return err
		}
		return watcher.Watch(gvk, handler.EnqueueRequestsFromMapFunc(r.clustersOfObject))
	}
	return nil
}

// standAloneOrGone keeps the Cluster from being reconciled with every change of every Machine: those of a set or a
// control plane are counted by it, and matter here only when a deletion waits for them.
func standAloneOrGone() predicate.Predicate {
	standAlone := func(obj client.Object) bool { return metav1.GetControllerOfNoCopy(obj) == nil }
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return standAlone(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool { return standAlone(e.ObjectOld) || standAlone(e.ObjectNew) },
		DeleteFunc: func(event.DeleteEvent) bool { return true },
	}
}

func clusterOfLabel(_ context.Context, obj client.Object) []reconcile.Request {
	name := obj.GetLabels()[clusterv1.ClusterNameLabel]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: obj.GetNamespace(), Name: name}}}
}

// clustersOfCRD wakes the Clusters that refer to a kind when it is installed or its contract label changes.
func (r *Reconciler) clustersOfCRD(ctx context.Context, crd client.Object) []reconcile.Request {
	return r.clustersNamed(ctx, client.MatchingFields{indexKind: crd.GetName()})
}

// clustersOfObject finds by reference and not by owner: an object that has just been created has no owner yet.
func (r *Reconciler) clustersOfObject(ctx context.Context, obj client.Object) []reconcile.Request {
	return r.clustersNamed(ctx, client.InNamespace(obj.GetNamespace()), client.MatchingFields{indexReference: contract.ReferenceKeyOf(obj)})
}

func (r *Reconciler) clustersNamed(ctx context.Context, opts ...client.ListOption) []reconcile.Request {
	list := &clusterv1.ClusterList{}
	if err := r.Client.List(ctx, list, append(opts, client.UnsafeDisableDeepCopy)...); err != nil {
		log.FromContext(ctx).Error(err, "List Clusters to wake")
		return nil
	}
	out := make([]reconcile.Request, 0, len(list.Items))
	for i := range list.Items {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return out
}

func referencesOf(cluster *clusterv1.Cluster) []clusterv1.ContractVersionedObjectReference {
	var out []clusterv1.ContractVersionedObjectReference
	for _, ref := range []clusterv1.ContractVersionedObjectReference{cluster.Spec.InfrastructureRef, cluster.Spec.ControlPlaneRef} {
		if ref.IsDefined() {
			out = append(out, ref)
		}
	}
	return out
}
