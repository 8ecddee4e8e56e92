package machine

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/contract"
	"github.com/millwright-dev/millwright/internal/workload"
)

// snapshot is all that one reconcile of a Machine decides on. machine is the working copy: reconcile changes it.
type snapshot struct {
	now     time.Time
	machine *clusterv1.Machine
	// cluster is nil when it does not exist.
	cluster                   *clusterv1.Cluster
	bootstrap, infrastructure external

	// connection is nil while the workload cluster does not answer; health tells why.
	connection *workload.Connection
	health     workload.Health
	// node is nil when there is none, or when it is not known: see connection and nodeErr.
	node    *corev1.Node
	nodeErr error
	// byUUID is set when the Node has no providerID and was found by its system UUID.
	byUUID bool

	// What the Machine said when it was read.
	nodeBefore  string
	phaseBefore clusterv1.MachinePhase
	reported    bool

	// lastControlPlane is set when a Machine that is being deleted takes the API server of its cluster with it.
	lastControlPlane bool
	// deletion is where the deletion stands; nil when it is not under way.
	deletion *waiting
}

// external is an object that the Machine refers to.
type external struct {
	ref clusterv1.ContractVersionedObjectReference
	// obj is nil when the reference is empty or points to nothing; missing tells which of its parts is not there. It is nil,
	// too, when the object is another's, which foreign tells: neither its state nor its deletion is our business.
	obj              *unstructured.Unstructured
	missing, foreign error
	// failed is set when it is not known whether there is an object.
	failed error
}

// going tells whether the object is being deleted or gone.
func (e external) going() bool {
	return e.failed == nil && (e.obj == nil || e.obj.GetDeletionTimestamp() != nil)
}

// snapshot reads everything through caches.
func (r *Reconciler) snapshot(ctx context.Context, machine *clusterv1.Machine) (*snapshot, error) {
	s := &snapshot{
		now:         time.Now(),
		machine:     machine,
		nodeBefore:  machine.Status.NodeRef.Name,
		phaseBefore: machine.Status.GetTypedPhase(),
		reported:    len(machine.Status.Conditions) > 0,
	}
	cluster := &clusterv1.Cluster{}
	key := client.ObjectKey{Namespace: machine.Namespace, Name: machine.Spec.ClusterName}
	switch err := r.Client.Get(ctx, key, cluster); {
	case err == nil:
		s.cluster = cluster
	case !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("get Cluster %q of Machine %q: %w", key, machine.Name, err)
	}

	s.bootstrap = r.external(ctx, machine, machine.Spec.Bootstrap.ConfigRef)
	s.infrastructure = r.external(ctx, machine, machine.Spec.InfrastructureRef)
	return s, r.readNode(ctx, s, key)
}

// external reads an object that the Machine refers to, and sees to it that its kind is watched: an object that is not
// there yet must wake the Machine when it comes.
func (r *Reconciler) external(ctx context.Context, machine *clusterv1.Machine, ref clusterv1.ContractVersionedObjectReference) external {
	e := external{ref: ref}
	if !ref.IsDefined() {
		return e
	}
	err := r.watch(ctx, ref)
	if err == nil {
		e.obj, err = r.resolver.Get(ctx, machine.Namespace, ref)
	}
	if err == nil {
		if e.foreign = contract.Foreign(e.obj, *ownerReference(machine), predecessors(machine)...); e.foreign != nil {
			e.obj = nil
		}
	}
	switch {
	case apierrors.IsNotFound(err):
		e.missing = err
	case err != nil:
		e.failed = fmt.Errorf("read %s of Machine %q: %w", describe(ref), client.ObjectKeyFromObject(machine), err)
	}
	return e
}

// externalLive reads, past the cache, an object that the cache does not hold.
func (r *Reconciler) externalLive(ctx context.Context, machine *clusterv1.Machine, e external) (external, error) {
	if !e.ref.IsDefined() || e.foreign != nil {
		return e, nil
	}
	gvk, err := r.resolver.GVK(ctx, e.ref.GroupKind())
	if apierrors.IsNotFound(err) {
		return e, nil // Its provider is gone, and all of its objects with it.
	}
	if err != nil {
		return e, err
	}
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(gvk)
	switch err := r.Live.Get(ctx, client.ObjectKey{Namespace: machine.Namespace, Name: e.ref.Name}, obj); {
	case apierrors.IsNotFound(err):
		return e, nil
	case err != nil:
		return e, fmt.Errorf("read %s of Machine %q: %w", describe(e.ref), client.ObjectKeyFromObject(machine), err)
	}
	if e.foreign = contract.Foreign(obj, *ownerReference(machine), predecessors(machine)...); e.foreign == nil {
		e.obj, e.missing = obj, nil
	}
	return e, nil
}

// readNode finds the Node once there can be one.
func (r *Reconciler) readNode(ctx context.Context, s *snapshot, cluster client.ObjectKey) error {
	if s.cluster == nil || (s.providerID() == "" && s.nodeBefore == "") {
		return nil
	}
	connection, err := r.Workload.Get(ctx, cluster)
	s.health = r.Workload.Health(cluster)
	if err != nil {
		if errors.Is(err, workload.ErrNotConnected) {
			return nil
		}
		return fmt.Errorf("Machine %q: %w", s.machine.Name, err)
	}
	s.connection = connection
	return r.findNode(ctx, s)
}

// providerID is what the infrastructure reports now, or what the Machine remembers.
func (s *snapshot) providerID() string {
	if s.infrastructure.obj != nil && contract.Provisioned(s.infrastructure.obj) {
		if id := contract.ProviderID(s.infrastructure.obj); id != "" {
			return id
		}
	}
	return s.machine.Spec.ProviderID
}

// clusterGoing tells whether the Cluster is being deleted or gone: then its Nodes are not worth any care.
func (s *snapshot) clusterGoing() bool {
	return s.cluster == nil || !s.cluster.DeletionTimestamp.IsZero()
}
