package machine

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
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

// Indexes of the cached Machines.
const (
	// indexReference finds the Machines that refer to an object, by group, kind and name.
	indexReference = "millwright/reference"
	// indexKind finds the Machines that refer to any object of a kind, by the name of its CRD.
	indexKind = "millwright/kind"
	// indexNode finds the Machine of a Node, by provider id and by system UUID.
	indexNode = "millwright/node"
	// indexGoing finds the Machines that are being deleted.
	indexGoing = "millwright/going"
)

// SetupWithManager adds the controller to a manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, opts controller.Options) error {
	r.resolver = &contract.Resolver{Client: r.Client}
	r.news = &patch.Unhurried{Delay: stationDelay, Each: stationEach}
	for index, values := range map[string]client.IndexerFunc{
		indexReference: contract.IndexReferences(referencesOf, contract.ReferenceKey),
		indexKind:      contract.IndexReferences(referencesOf, contract.ReferenceCRD),
		indexNode:      nodeKeys,
		indexGoing:     goingKeys,
	} {
		if err := mgr.GetFieldIndexer().IndexField(context.Background(), &clusterv1.Machine{}, index, values); err != nil {
			return fmt.Errorf("index Machines by %s: %w", index, err)
		}
	}
	c, err := ctrl.NewControllerManagedBy(mgr).
		Named("machine").
		For(&clusterv1.Machine{}).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.machinesOfCluster), builder.WithPredicates(clusterPredicate())).
		Watches(&clusterv1.MachineDrainRule{}, handler.EnqueueRequestsFromMapFunc(r.machinesThatGo), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(contract.CRDMetadata(), handler.EnqueueRequestsFromMapFunc(r.machinesOfCRD), builder.WithPredicates(predicate.LabelChangedPredicate{})).
		WatchesRawSource(r.Workload.ClusterEventsTo(func(ctx context.Context, cluster client.ObjectKey) []reconcile.Request {
			return r.machinesNamed(ctx, client.InNamespace(cluster.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: cluster.Name})
		})).
		WatchesRawSource(r.Workload.NodeEvents(r.machineOfNode)).
		WithOptions(opts).
		Build(r)
	if err != nil {
		return fmt.Errorf("set up the machine controller: %w", err)
	}
	watcher := watches.New(c, mgr)
	r.watch = func(ctx context.Context, ref clusterv1.ContractVersionedObjectReference) error {
		gvk, err := r.resolver.GVK(ctx, ref.GroupKind())
		if err != nil {
			return err
		}
		return watcher.Watch(gvk, handler.EnqueueRequestsFromMapFunc(r.machinesOfObject))
	}
	return nil
}

// clusterPredicate lets only those changes of a Cluster through that a Machine acts on; its counters change with every
// Machine.
func clusterPredicate() predicate.Predicate {
	type relevant struct{ paused, deleting, infrastructure, controlPlane bool }
	of := func(obj client.Object) relevant {
		cluster, ok := obj.(*clusterv1.Cluster)
		if !ok {
			return relevant{}
		}
		return relevant{
			paused:         isTrue(cluster.Spec.Paused),
			deleting:       !cluster.DeletionTimestamp.IsZero(),
			infrastructure: isTrue(cluster.Status.Initialization.InfrastructureProvisioned),
			controlPlane:   isTrue(cluster.Status.Initialization.ControlPlaneInitialized),
		}
	}
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool { return of(e.ObjectOld) != of(e.ObjectNew) }}
}

func (r *Reconciler) machinesOfCluster(ctx context.Context, cluster client.Object) []reconcile.Request {
	return r.machinesNamed(ctx, client.InNamespace(cluster.GetNamespace()), client.MatchingLabels{clusterv1.ClusterNameLabel: cluster.GetName()})
}

// machinesThatGo wakes the Machines of a namespace whose drain a rule may change.
func (r *Reconciler) machinesThatGo(ctx context.Context, rule client.Object) []reconcile.Request {
	return r.machinesNamed(ctx, client.InNamespace(rule.GetNamespace()), client.MatchingFields{indexGoing: "true"})
}

// machinesOfCRD wakes the Machines that refer to a kind when it is installed or its contract label changes.
func (r *Reconciler) machinesOfCRD(ctx context.Context, crd client.Object) []reconcile.Request {
	return r.machinesNamed(ctx, client.MatchingFields{indexKind: crd.GetName()})
}

// machinesOfObject finds by reference and not by owner: an object that has just been created has no owner yet.
func (r *Reconciler) machinesOfObject(ctx context.Context, obj client.Object) []reconcile.Request {
	return r.machinesNamed(ctx, client.InNamespace(obj.GetNamespace()), client.MatchingFields{indexReference: contract.ReferenceKeyOf(obj)})
}

func (r *Reconciler) machineOfNode(ctx context.Context, cluster client.ObjectKey, node *corev1.Node) []reconcile.Request {
	keys := []string{node.Spec.ProviderID}
	if node.Spec.ProviderID == "" {
		keys = systemUUIDs(node.Status.NodeInfo.SystemUUID)
	}
	var out []reconcile.Request
	for _, key := range keys {
		if key != "" {
			out = append(out, r.machinesNamed(ctx, client.InNamespace(cluster.Namespace), client.MatchingFields{indexNode: key},
				client.MatchingLabels{clusterv1.ClusterNameLabel: cluster.Name})...)
		}
	}
	return out
}

func (r *Reconciler) machinesNamed(ctx context.Context, opts ...client.ListOption) []reconcile.Request {
	list := &clusterv1.MachineList{}
	// Only names are taken, so the cache need not copy.
	if err := r.Client.List(ctx, list, append(opts, client.UnsafeDisableDeepCopy)...); err != nil {
		log.FromContext(ctx).Error(err, "List Machines to wake")
		return nil
	}
	out := make([]reconcile.Request, 0, len(list.Items))
	for i := range list.Items {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return out
}

func referencesOf(machine *clusterv1.Machine) []clusterv1.ContractVersionedObjectReference {
	refs := []clusterv1.ContractVersionedObjectReference{machine.Spec.InfrastructureRef}
	if machine.Spec.Bootstrap.ConfigRef.IsDefined() {
		refs = append(refs, machine.Spec.Bootstrap.ConfigRef)
	}
	return refs
}

// nodeKeys are the provider id and the system UUIDs that it stands for.
func nodeKeys(obj client.Object) []string {
	id := obj.(*clusterv1.Machine).Spec.ProviderID
	if id == "" {
		return nil
	}
	return append([]string{id}, systemUUIDs(id)...)
}

func goingKeys(obj client.Object) []string {
	if obj.GetDeletionTimestamp() == nil {
		return nil
	}
	return []string{"true"}
}
