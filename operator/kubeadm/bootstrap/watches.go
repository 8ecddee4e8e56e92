package bootstrap

import (
	"context"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
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
	"github.com/millwright-dev/millwright/operator/kubeadm/certificates"
)

// SetupWithManager registers the controller and what it watches: KubeadmConfigs, their Machines and
// Clusters, and connections to workload clusters, in which tokens are made.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, opts controller.Options) error {
	if r.Live == nil {
		r.Live = mgr.GetAPIReader()
	}
	r.resolver = &contract.Resolver{Client: r.Client}
	r.certificates = &certificates.Store{Client: r.Client, Live: r.Live, Now: time.Now}
	r.lock = initLock{client: r.Client, live: r.Live}
	return ctrl.NewControllerManagedBy(mgr).
		Named("kubeadmconfig").
		WithOptions(opts).
		For(&bootstrapv1.KubeadmConfig{}, builder.WithPredicates(configChanged())).
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(r.fromMachine), builder.WithPredicates(machineChanged())).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.fromCluster), builder.WithPredicates(clusterChanged())).
		WatchesRawSource(r.Workload.ClusterEventsTo(func(ctx context.Context, cluster client.ObjectKey) []reconcile.Request {
			return r.unfinished(ctx, cluster, nil)
		})).
		Complete(r)
}

// configChanged leaves out changes of status, which are our own.
func configChanged() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			return !equality.Semantic.DeepEqual(e.ObjectOld.GetOwnerReferences(), e.ObjectNew.GetOwnerReferences())
		},
	})
}

// machineChanged lets through what the next step depends on.
func machineChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok1 := e.ObjectOld.(*clusterv1.Machine)
		after, ok2 := e.ObjectNew.(*clusterv1.Machine)
		if !ok1 || !ok2 {
			return true
		}
		return before.Status.NodeRef != after.Status.NodeRef ||
			before.Spec.Version != after.Spec.Version ||
			!maps.Equal(before.Labels, after.Labels) ||
			!equality.Semantic.DeepEqual(before.Spec.Bootstrap, after.Spec.Bootstrap)
	}}
}

func clusterChanged() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok1 := e.ObjectOld.(*clusterv1.Cluster)
		after, ok2 := e.ObjectNew.(*clusterv1.Cluster)
		return !ok1 || !ok2 || !equality.Semantic.DeepEqual(before.Status.Initialization, after.Status.Initialization)
	}})
}

// fromMachine maps a Machine to its config. A control plane machine may have held the init lock, for
// which others wait; with its end their turn may have come.
func (r *Reconciler) fromMachine(ctx context.Context, obj client.Object) []reconcile.Request {
	machine, ok := obj.(*clusterv1.Machine)
	if !ok {
		return nil
	}
	var out []reconcile.Request
	ref := machine.Spec.Bootstrap.ConfigRef
	if ref.Kind == "KubeadmConfig" && ref.APIGroup == bootstrapv1.GroupVersion.Group {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: machine.Namespace, Name: ref.Name}})
	}
	if isControlPlane(machine) {
		cluster := client.ObjectKey{Namespace: machine.Namespace, Name: machine.Spec.ClusterName}
		others := r.unfinished(ctx, cluster, client.MatchingLabels{clusterv1.MachineControlPlaneLabel: ""})
		out = append(out, slices.DeleteFunc(others, func(request reconcile.Request) bool { return slices.Contains(out, request) })...)
	}
	return out
}

// fromCluster maps a Cluster to all its configs: pausing concerns finished ones too.
func (r *Reconciler) fromCluster(ctx context.Context, obj client.Object) []reconcile.Request {
	return r.configs(ctx, client.ObjectKeyFromObject(obj), nil, func(*bootstrapv1.KubeadmConfig) bool { return true })
}

// unfinished returns requests for the configs of a cluster that have no user data yet.
func (r *Reconciler) unfinished(ctx context.Context, cluster client.ObjectKey, labels client.MatchingLabels) []reconcile.Request {
	return r.configs(ctx, cluster, labels, func(config *bootstrapv1.KubeadmConfig) bool {
		return !ptr.Deref(config.Status.Initialization.DataSecretCreated, false)
	})
}

// configs returns requests for the configs of a cluster with these labels that concern returns true for.
func (r *Reconciler) configs(ctx context.Context, cluster client.ObjectKey, labels client.MatchingLabels, concerns func(*bootstrapv1.KubeadmConfig) bool) []reconcile.Request {
	list := &bootstrapv1.KubeadmConfigList{}
	options := []client.ListOption{client.InNamespace(cluster.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: cluster.Name}, labels}
	if err := r.Client.List(ctx, list, options...); err != nil {
		log.FromContext(ctx).Error(err, "List KubeadmConfigs to find those that an event concerns", "cluster", cluster)
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		if concerns(&list.Items[i]) {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return out
}
