package machinehealthcheck

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

	"github.com/millwright-dev/millwright/internal/contract"
	"github.com/millwright-dev/millwright/internal/contract/watches"
)

// indexNodeName finds the cached Machine that refers to a Node.
const indexNodeName = "millwright/nodeName"

// SetupWithManager registers the controller and what it watches: checks, Machines, Clusters, Nodes and connections of
// workload clusters, CRDs, and remediation templates and requests once a check names their kind.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, opts controller.Options) error {
	r.resolver = &contract.Resolver{Client: r.Client}
	err := mgr.GetFieldIndexer().IndexField(context.Background(), &clusterv1.Machine{}, indexNodeName, func(obj client.Object) []string {
		if name := obj.(*clusterv1.Machine).Status.NodeRef.Name; name != "" {
			return []string{name}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("index Machines by %s: %w", indexNodeName, err)
	}
	c, err := ctrl.NewControllerManagedBy(mgr).
		Named("machinehealthcheck").
		WithOptions(opts).
		For(&clusterv1.MachineHealthCheck{}).
		Watches(&clusterv1.MachineHealthCheck{}, handler.EnqueueRequestsFromMapFunc(r.fromRival), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(r.fromMachine), builder.WithPredicates(machineChanged())).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.fromCluster), builder.WithPredicates(clusterChanged())).
		Watches(contract.CRDMetadata(), handler.EnqueueRequestsFromMapFunc(r.fromCRD)).
		WatchesRawSource(r.Workload.ClusterEventsTo(r.fromConnection)).
		WatchesRawSource(r.Workload.NodeEvents(r.fromNode)).
		Build(r)
	if err != nil {
		return fmt.Errorf("set up the machine health check controller: %w", err)
	}
	watcher := watches.New(c, mgr)
	r.watch = func(ctx context.Context, kind schema.GroupKind) error {
		gvk, err := r.resolver.GVK(ctx, kind)
		if err != nil {
			return err
		}
		return watcher.Watch(gvk, handler.EnqueueRequestsFromMapFunc(r.fromRemediation))
	}
	return nil
}

// machineChanged lets through what a verdict looks at.
func machineChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok1 := e.ObjectOld.(*clusterv1.Machine)
		after, ok2 := e.ObjectNew.(*clusterv1.Machine)
		return !ok1 || !ok2 ||
			before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
			before.Status.NodeRef != after.Status.NodeRef ||
			before.Status.Phase != after.Status.Phase ||
			!maps.Equal(before.Labels, after.Labels) ||
			!maps.Equal(before.Annotations, after.Annotations) ||
			!equality.Semantic.DeepEqual(before.Status.Conditions, after.Status.Conditions)
	}}
}

// clusterChanged lets through what a verdict looks at: a Cluster's counters change with every Machine.
func clusterChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok1 := e.ObjectOld.(*clusterv1.Cluster)
		after, ok2 := e.ObjectNew.(*clusterv1.Cluster)
		if !ok1 || !ok2 {
			return true
		}
		for _, condition := range []string{clusterv1.ClusterInfrastructureReadyCondition, clusterv1.ClusterControlPlaneInitializedCondition} {
			if !becameTrue(before, condition).Equal(becameTrue(after, condition)) {
				return true
			}
		}
		return before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
			contract.Paused(before, &metav1.ObjectMeta{}) != contract.Paused(after, &metav1.ObjectMeta{})
	}}
}

// fromMachine maps a Machine to the checks that select it.
func (r *Reconciler) fromMachine(ctx context.Context, obj client.Object) []reconcile.Request {
	return r.checks(ctx, obj.GetNamespace(), func(check *clusterv1.MachineHealthCheck) bool {
		selector, err := metav1.LabelSelectorAsSelector(&check.Spec.Selector)
		return err == nil && check.Spec.ClusterName == obj.GetLabels()[clusterv1.ClusterNameLabel] && selector.Matches(labels.Set(obj.GetLabels()))
	})
}

// fromRival maps a check to the others of its cluster: what it selects is not theirs, or becomes theirs when it goes.
func (r *Reconciler) fromRival(ctx context.Context, obj client.Object) []reconcile.Request {
	return r.checks(ctx, obj.GetNamespace(), func(check *clusterv1.MachineHealthCheck) bool {
		return check.Name != obj.GetName() && check.Spec.ClusterName == obj.(*clusterv1.MachineHealthCheck).Spec.ClusterName
	})
}

func (r *Reconciler) fromCluster(ctx context.Context, obj client.Object) []reconcile.Request {
	return r.fromConnection(ctx, client.ObjectKeyFromObject(obj))
}

func (r *Reconciler) fromConnection(ctx context.Context, cluster client.ObjectKey) []reconcile.Request {
	return r.checks(ctx, cluster.Namespace, func(check *clusterv1.MachineHealthCheck) bool {
		return check.Spec.ClusterName == cluster.Name
	})
}

// fromNode maps a Node to the checks of the Machine that refers to it. A Node that no Machine refers to yet comes back
// as an event of its Machine.
func (r *Reconciler) fromNode(ctx context.Context, cluster client.ObjectKey, node *corev1.Node) []reconcile.Request {
	list := &clusterv1.MachineList{}
	err := r.Client.List(ctx, list, client.InNamespace(cluster.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: cluster.Name},
		client.MatchingFields{indexNodeName: node.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		log.FromContext(ctx).Error(err, "Find the Machine of a Node", "node", node.Name)
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		out = append(out, r.fromMachine(ctx, &list.Items[i])...)
	}
	return out
}

func (r *Reconciler) fromCRD(ctx context.Context, obj client.Object) []reconcile.Request {
	return r.checks(ctx, metav1.NamespaceAll, func(check *clusterv1.MachineHealthCheck) bool {
		template, request := templateRef(check), requestRef(check, "")
		return obj.GetName() == contract.CRDName(template.GroupKind()) || obj.GetName() == contract.CRDName(request.GroupKind())
	})
}

// fromRemediation maps a remediation template, or a request, to the checks that remediate with it.
func (r *Reconciler) fromRemediation(ctx context.Context, obj client.Object) []reconcile.Request {
	kind := obj.GetObjectKind().GroupVersionKind().GroupKind()
	return r.checks(ctx, obj.GetNamespace(), func(check *clusterv1.MachineHealthCheck) bool {
		template, request := templateRef(check), requestRef(check, "")
		if template.GroupKind() == kind {
			return template.Name == obj.GetName()
		}
		return request.GroupKind() == kind
	})
}

// checks returns requests for the checks of a namespace that concern returns true for.
func (r *Reconciler) checks(ctx context.Context, namespace string, concerns func(*clusterv1.MachineHealthCheck) bool) []reconcile.Request {
	return contract.RequestsFor(ctx, r.Client, &clusterv1.MachineHealthCheckList{}, namespace, concerns)
}
