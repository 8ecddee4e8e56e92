package machineset

import (
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/contract"
	"github.com/millwright-dev/millwright/internal/contract/watches"
	"github.com/millwright-dev/millwright/internal/patch"
)

// SetupWithManager registers the controller and what it watches: sets, their Machines, Clusters (for pause, creation and
// failure domains), deployments (for their template, revision and limits), CRDs, and the templates and control planes
// that are named.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, opts controller.Options) error {
	r.resolver = contract.Resolver{Client: r.Client}
	r.news = &patch.Unhurried{Delay: countersDelay}
	c, err := ctrl.NewControllerManagedBy(mgr).
		Named("machineset").
		WithOptions(opts).
		For(&clusterv1.MachineSet{}).
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(r.fromMachine), builder.WithPredicates(machineChanged())).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.fromCluster), builder.WithPredicates(clusterChanged())).
		Watches(&clusterv1.MachineDeployment{}, handler.EnqueueRequestsFromMapFunc(r.fromDeployment), builder.WithPredicates(
			predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		Watches(contract.CRDMetadata(), handler.EnqueueRequestsFromMapFunc(r.fromCRD)).
		Build(r)
	if err != nil {
		return err
	}
	r.watcher = watches.New(c, mgr)
	return nil
}

// machineChanged lets through what a set looks at. The rest of a Machine's status moves often, and with a thousand
// Machines each such move would cost a look at all of them.
func machineChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok1 := e.ObjectOld.(*clusterv1.Machine)
		after, ok2 := e.ObjectNew.(*clusterv1.Machine)
		if !ok1 || !ok2 {
			return true
		}
		for _, condition := range []string{
			clusterv1.MachineReadyCondition, clusterv1.MachineAvailableCondition, clusterv1.MachineUpToDateCondition,
			clusterv1.MachineHealthCheckSucceededCondition, clusterv1.MachineOwnerRemediatedCondition,
		} {
			if !equality.Semantic.DeepEqual(conditions.Get(before, condition), conditions.Get(after, condition)) {
				return true
			}
		}
		_, skipBefore := before.Annotations[clusterv1.MachineSkipRemediationAnnotation]
		_, skipAfter := after.Annotations[clusterv1.MachineSkipRemediationAnnotation]
		return skipBefore != skipAfter ||
			before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
			before.Spec.Version != after.Spec.Version ||
			!maps.Equal(before.Labels, after.Labels) ||
			!equality.Semantic.DeepEqual(before.OwnerReferences, after.OwnerReferences)
	}}
}

// clusterChanged lets through what a set looks at: the spec, and the failure domains.
func clusterChanged() predicate.Predicate {
	return predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok1 := e.ObjectOld.(*clusterv1.Cluster)
		after, ok2 := e.ObjectNew.(*clusterv1.Cluster)
		return !ok1 || !ok2 || !slices.Equal(domainsOf(before), domainsOf(after)) || provisioned(before) != provisioned(after)
	}})
}

// controlPlaneChanged lets through what the checks before a Machine is made look at.
func controlPlaneChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok1 := e.ObjectOld.(*unstructured.Unstructured)
		after, ok2 := e.ObjectNew.(*unstructured.Unstructured)
		return !ok1 || !ok2 || contract.Version(before) != contract.Version(after) || contract.StatusVersion(before) != contract.StatusVersion(after)
	}}
}

// fromMachine maps a Machine to the set that controls it, an orphan to the sets that would adopt it.
func (r *Reconciler) fromMachine(ctx context.Context, obj client.Object) []reconcile.Request {
	if owner := metav1.GetControllerOf(obj); owner != nil {
		if owner.Kind != "MachineSet" {
			return nil
		}
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: obj.GetNamespace(), Name: owner.Name}}}
	}
	return r.sets(ctx, obj.GetNamespace(), func(set *clusterv1.MachineSet) bool {
		selector, err := metav1.LabelSelectorAsSelector(&set.Spec.Selector)
		return err == nil && !selector.Empty() && selector.Matches(labels.Set(obj.GetLabels()))
	})
}

func (r *Reconciler) fromCluster(ctx context.Context, obj client.Object) []reconcile.Request {
	return r.sets(ctx, obj.GetNamespace(), func(set *clusterv1.MachineSet) bool {
		return set.Spec.ClusterName == obj.GetName()
	})
}

func (r *Reconciler) fromDeployment(ctx context.Context, obj client.Object) []reconcile.Request {
	return r.sets(ctx, obj.GetNamespace(), func(set *clusterv1.MachineSet) bool {
		return metav1.IsControlledBy(set, obj)
	})
}

func (r *Reconciler) fromCRD(ctx context.Context, obj client.Object) []reconcile.Request {
	return r.sets(ctx, metav1.NamespaceAll, func(set *clusterv1.MachineSet) bool {
		spec := set.Spec.Template.Spec
		return obj.GetName() == contract.CRDName(spec.InfrastructureRef.GroupKind()) ||
			obj.GetName() == contract.CRDName(spec.Bootstrap.ConfigRef.GroupKind())
	})
}

// fromTemplates maps templates of one kind to the sets that name them.
func (r *Reconciler) fromTemplates(kind schema.GroupKind) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []reconcile.Request {
		return r.sets(ctx, obj.GetNamespace(), func(set *clusterv1.MachineSet) bool {
			spec := set.Spec.Template.Spec
			for _, ref := range []clusterv1.ContractVersionedObjectReference{spec.InfrastructureRef, spec.Bootstrap.ConfigRef} {
				if ref.GroupKind() == kind && ref.Name == obj.GetName() {
					return true
				}
			}
			return false
		})
	})
}

// fromControlPlanes maps control planes of one kind to the sets of the Clusters that name them.
func (r *Reconciler) fromControlPlanes(kind schema.GroupKind) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []reconcile.Request {
		clusters := &clusterv1.ClusterList{}
		if err := r.Client.List(ctx, clusters, client.InNamespace(obj.GetNamespace())); err != nil {
			log.FromContext(ctx).Error(err, "List Clusters to find those that an event concerns", "namespace", obj.GetNamespace())
			return nil
		}
		concerned := map[string]bool{}
		for _, cluster := range clusters.Items {
			ref := cluster.Spec.ControlPlaneRef
			concerned[cluster.Name] = ref.GroupKind() == kind && ref.Name == obj.GetName()
		}
		return r.sets(ctx, obj.GetNamespace(), func(set *clusterv1.MachineSet) bool { return concerned[set.Spec.ClusterName] })
	})
}

// sets returns requests for the sets of a namespace that concern returns true for.
func (r *Reconciler) sets(ctx context.Context, namespace string, concerns func(*clusterv1.MachineSet) bool) []reconcile.Request {
	return contract.RequestsFor(ctx, r.Client, &clusterv1.MachineSetList{}, namespace, concerns)
}
