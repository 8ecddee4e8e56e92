package machine

import (
	"context"

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
	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/contract"
	"github.com/millwright-dev/millwright/internal/patch"
	"github.com/millwright-dev/millwright/operator/vsphere/identity"
)

// SetupWithManager registers the controller and what it watches: VSphereMachines, their Machines, Clusters and
// VSphereClusters, and the tasks and virtual machines in vCenter.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, opts controller.Options) error {
	if r.Live == nil {
		r.Live = mgr.GetAPIReader()
	}
	if r.Recorder == nil {
		r.Recorder = mgr.GetEventRecorder("millwright-vspheremachine")
	}
	r.news = &patch.Unhurried{Delay: stationDelay, Each: stationEach}
	return ctrl.NewControllerManagedBy(mgr).
		Named("vspheremachine").
		WithOptions(opts).
		For(&infrav1.VSphereMachine{}, builder.WithPredicates(notOnlyStatus())).
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(fromMachine), builder.WithPredicates(predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, nodeFellSilent()))).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.fromCluster), builder.WithPredicates(clusterChanged())).
		Watches(&infrav1.VSphereCluster{}, handler.EnqueueRequestsFromMapFunc(r.fromVSphereCluster), builder.WithPredicates(loginChanged())).
		WatchesRawSource(identity.Events(r.Sessions.OnChange)).
		Complete(r)
}

// notOnlyStatus keeps our own writes of status from bringing the object back.
func notOnlyStatus() predicate.Predicate {
	// A MachineSet hands its objects over to their Machine: another owner, and not one more.
	owners := predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return !equality.Semantic.DeepEqual(e.ObjectOld.GetOwnerReferences(), e.ObjectNew.GetOwnerReferences())
	}}
	return predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, predicate.LabelChangedPredicate{}, owners)
}

// nodeFellSilent lets through a Machine whose Node is not ready any more: its virtual machine, which is not watched while
// it is at rest, may have been switched off or deleted.
func nodeFellSilent() predicate.Predicate {
	const kind = clusterv1.MachineNodeReadyCondition
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, after := e.ObjectOld.(*clusterv1.Machine), e.ObjectNew.(*clusterv1.Machine)
			return conditions.IsTrue(before, kind) && !conditions.IsTrue(after, kind)
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

func clusterChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*clusterv1.Cluster), e.ObjectNew.(*clusterv1.Cluster)
		return isTrue(before.Status.Initialization.InfrastructureProvisioned) != isTrue(after.Status.Initialization.InfrastructureProvisioned) ||
			isTrue(before.Spec.Paused) != isTrue(after.Spec.Paused)
	}}
}

// loginChanged lets through a VSphereCluster that lost or found its way to vCenter.
func loginChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*infrav1.VSphereCluster), e.ObjectNew.(*infrav1.VSphereCluster)
		return conditions.IsTrue(before, infrav1.VCenterAvailableCondition) != conditions.IsTrue(after, infrav1.VCenterAvailableCondition)
	}}
}

func fromMachine(_ context.Context, obj client.Object) []reconcile.Request {
	ref := obj.(*clusterv1.Machine).Spec.InfrastructureRef
	if ref.APIGroup != infrav1.GroupName || ref.Kind != "VSphereMachine" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: obj.GetNamespace(), Name: ref.Name}}}
}

func (r *Reconciler) fromCluster(ctx context.Context, obj client.Object) []reconcile.Request {
	return r.machines(ctx, obj.GetNamespace(), obj.GetName())
}

func (r *Reconciler) fromVSphereCluster(ctx context.Context, obj client.Object) []reconcile.Request {
	for _, owner := range obj.GetOwnerReferences() {
		if owner.Kind == clusterv1.ClusterKind {
			return r.machines(ctx, obj.GetNamespace(), owner.Name)
		}
	}
	return nil
}

// machines returns requests for the VSphereMachines of a Cluster.
func (r *Reconciler) machines(ctx context.Context, namespace, clusterName string) []reconcile.Request {
	list := &infrav1.VSphereMachineList{}
	err := r.Client.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: contract.LabelValue(clusterName)})
	if err != nil {
		log.FromContext(ctx).Error(err, "List the VSphereMachines of a Cluster", "cluster", clusterName)
		return nil
	}
	out := make([]reconcile.Request, 0, len(list.Items))
	for i := range list.Items {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return out
}
