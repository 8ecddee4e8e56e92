package addon

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

	addonsv1 "github.com/millwright-dev/millwright/api/addons/v1alpha1"
	"github.com/millwright-dev/millwright/internal/conditions"
)

// indexBundle finds Addons and AddonReleases by their bundle.
const indexBundle = "spec.bundle"

// SetupWithManager registers the controller and what it watches: Addons, the labels of Clusters, and how releases fare.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, opts controller.Options) error {
	ctx := context.Background()
	if err := mgr.GetFieldIndexer().IndexField(ctx, &addonsv1.Addon{}, indexBundle, func(obj client.Object) []string {
		return []string{obj.(*addonsv1.Addon).Spec.Bundle}
	}); err != nil {
		return err
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &addonsv1.AddonRelease{}, indexBundle, func(obj client.Object) []string {
		return []string{obj.(*addonsv1.AddonRelease).Spec.Bundle}
	}); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("addon").
		WithOptions(opts).
		For(&addonsv1.Addon{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&addonsv1.Addon{}, handler.EnqueueRequestsFromMapFunc(r.rivals), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&addonsv1.AddonRelease{}, handler.EnqueueRequestsFromMapFunc(r.ofRelease), builder.WithPredicates(standingChanged)).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.inNamespace), builder.WithPredicates(selectionChanged)).
		Complete(r)
}

// standingChanged lets by what a rollout waits for.
var standingChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, ok1 := e.ObjectOld.(*addonsv1.AddonRelease)
	after, ok2 := e.ObjectNew.(*addonsv1.AddonRelease)
	if !ok1 || !ok2 {
		return true
	}
	was, is := conditions.Get(before, addonsv1.ReadyCondition), conditions.Get(after, addonsv1.ReadyCondition)
	same := (was == nil) == (is == nil) && (was == nil || was.Status == is.Status && was.Reason == is.Reason && was.ObservedGeneration == is.ObservedGeneration)
	return !same || before.Generation != after.Generation || before.Status.ObservedGeneration != after.Status.ObservedGeneration ||
		before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
		!equality.Semantic.DeepEqual(before.OwnerReferences, after.OwnerReferences)
}}

// selectionChanged lets by what selectors see of a Cluster.
var selectionChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	return !equality.Semantic.DeepEqual(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) ||
		e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero()
}}

// rivals finds the other Addons of an Addon's bundle.
func (r *Reconciler) rivals(ctx context.Context, obj client.Object) []reconcile.Request {
	addon, ok := obj.(*addonsv1.Addon)
	if !ok {
		return nil
	}
	requests := r.requests(ctx, addon.Namespace, client.MatchingFields{indexBundle: addon.Spec.Bundle})
	var others []reconcile.Request
	for _, request := range requests {
		if request.Name != addon.Name {
			others = append(others, request)
		}
	}
	return others
}

// ofRelease finds the Addons of a release's bundle: its own, and those that may have it next.
func (r *Reconciler) ofRelease(ctx context.Context, obj client.Object) []reconcile.Request {
	release, ok := obj.(*addonsv1.AddonRelease)
	if !ok {
		return nil
	}
	return r.requests(ctx, release.Namespace, client.MatchingFields{indexBundle: release.Spec.Bundle})
}

// inNamespace finds all Addons beside a Cluster: its labels may have selected it before and not any more.
func (r *Reconciler) inNamespace(ctx context.Context, obj client.Object) []reconcile.Request {
	return r.requests(ctx, obj.GetNamespace())
}

func (r *Reconciler) requests(ctx context.Context, namespace string, options ...client.ListOption) []reconcile.Request {
	list := &addonsv1.AddonList{}
	if err := r.Client.List(ctx, list, append(options, client.InNamespace(namespace))...); err != nil {
		log.FromContext(ctx).Error(err, "An event reaches no Addon", "namespace", namespace)
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}
