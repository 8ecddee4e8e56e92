package cluster

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
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

	infrav1 "github.com/millwright-dev/millwright/api/infrastructure/v1beta2"
	"github.com/millwright-dev/millwright/internal/contract"
	"github.com/millwright-dev/millwright/operator/vsphere/identity"
)

// SetupWithManager registers the controller and what it watches: VSphereClusters, their Clusters, Secrets, identities,
// deployment zones, the end of their machines, and the state of their sessions.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, opts controller.Options) error {
	if r.Live == nil {
		r.Live = mgr.GetAPIReader()
	}
	if r.Recorder == nil {
		r.Recorder = mgr.GetEventRecorder("millwright-vspherecluster")
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("vspherecluster").
		WithOptions(opts).
		For(&infrav1.VSphereCluster{}, builder.WithPredicates(predicate.Or[client.Object](
			predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, predicate.LabelChangedPredicate{}, ownersChanged()))).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.fromCluster), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(fromSecret)).
		Watches(&infrav1.VSphereClusterIdentity{}, handler.EnqueueRequestsFromMapFunc(r.fromIdentity), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&infrav1.VSphereDeploymentZone{}, handler.EnqueueRequestsFromMapFunc(r.fromZone)).
		Watches(&infrav1.VSphereMachine{}, handler.EnqueueRequestsFromMapFunc(r.fromMachine), builder.WithPredicates(onlyDeletions())).
		WatchesRawSource(identity.Events(r.Sessions.OnState)).
		Complete(r)
}

func ownersChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return !equality.Semantic.DeepEqual(e.ObjectOld.GetOwnerReferences(), e.ObjectNew.GetOwnerReferences())
	}}
}

func onlyDeletions() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		UpdateFunc:  func(event.UpdateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

func (r *Reconciler) fromCluster(_ context.Context, obj client.Object) []reconcile.Request {
	ref := obj.(*clusterv1.Cluster).Spec.InfrastructureRef
	if ref.APIGroup != infrav1.GroupName || ref.Kind != "VSphereCluster" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: obj.GetNamespace(), Name: ref.Name}}}
}

func fromSecret(_ context.Context, obj client.Object) []reconcile.Request {
	var out []reconcile.Request
	for _, owner := range obj.GetOwnerReferences() {
		if owner.Kind == "VSphereCluster" && strings.HasPrefix(owner.APIVersion, infrav1.GroupName+"/") {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: obj.GetNamespace(), Name: owner.Name}})
		}
	}
	return out
}

func (r *Reconciler) fromIdentity(ctx context.Context, obj client.Object) []reconcile.Request {
	return r.clusters(ctx, "", func(cluster *infrav1.VSphereCluster) bool {
		ref := cluster.Spec.IdentityRef
		return ref.Kind == infrav1.VSphereClusterIdentityKind && ref.Name == obj.GetName()
	})
}

func (r *Reconciler) fromZone(ctx context.Context, _ client.Object) []reconcile.Request {
	return r.clusters(ctx, "", func(cluster *infrav1.VSphereCluster) bool { return cluster.Spec.FailureDomainSelector != nil })
}

func (r *Reconciler) fromMachine(ctx context.Context, obj client.Object) []reconcile.Request {
	return r.clusters(ctx, obj.GetNamespace(), func(cluster *infrav1.VSphereCluster) bool {
		return !cluster.DeletionTimestamp.IsZero() && clusterName(cluster) == obj.GetLabels()[clusterv1.ClusterNameLabel]
	})
}

// clusters returns requests for the VSphereClusters that concern returns true for; of all namespaces when it is empty.
func (r *Reconciler) clusters(ctx context.Context, namespace string, concern func(*infrav1.VSphereCluster) bool) []reconcile.Request {
	list := &infrav1.VSphereClusterList{}
	if err := r.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		log.FromContext(ctx).Error(err, "List VSphereClusters to find those that an event concerns")
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		if concern(&list.Items[i]) {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return out
}

// clusterName is the name of the Cluster that owns a VSphereCluster, as machines bear it in their label; empty when there
// is no owner yet.
func clusterName(cluster *infrav1.VSphereCluster) string {
	if name := cluster.Labels[clusterv1.ClusterNameLabel]; name != "" {
		return name
	}
	for _, owner := range cluster.OwnerReferences {
		if owner.Kind == clusterv1.ClusterKind {
			return contract.LabelValue(owner.Name)
		}
	}
	return ""
}
