package cluster

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/contract"
	"github.com/millwright-dev/millwright/internal/workload"
)

// snapshot is all that one reconcile of a Cluster decides on. cluster is the working copy: reconcile changes it. The
// lists share memory with the cache and must not be changed.
type snapshot struct {
	now     time.Time
	cluster *clusterv1.Cluster
	// before is the status as it was read.
	before                       clusterv1.ClusterStatus
	infrastructure, controlPlane external

	deployments []clusterv1.MachineDeployment
	// sets without those of deployments.
	sets []clusterv1.MachineSet
	// workers and controlPlaneMachines that no set and no control plane controls.
	workers, controlPlaneMachines []clusterv1.Machine
	// managed are what is left of sets and worker Machines of deployments and sets; a deletion waits for them.
	managedSets, managedWorkers int

	health workload.Health
	// deletion is where the deletion stands; nil when it is not under way.
	deletion *waiting
}

// external is an object that the Cluster refers to.
type external struct {
	ref clusterv1.ContractVersionedObjectReference
	// obj is nil when the reference is empty or points to nothing; missing tells which of its parts is not there. It is nil,
	// too, when the object is another's, which foreign tells: neither its state nor its deletion is our business.
	obj              *unstructured.Unstructured
	missing, foreign error
	// failed is set when it is not known whether there is an object.
	failed error
}

// snapshot reads everything through caches.
func (r *Reconciler) snapshot(ctx context.Context, cluster *clusterv1.Cluster) (*snapshot, error) {
	s := &snapshot{now: time.Now(), cluster: cluster, before: *cluster.Status.DeepCopy()}
	s.infrastructure = r.external(ctx, cluster, cluster.Spec.InfrastructureRef)
	s.controlPlane = r.external(ctx, cluster, cluster.Spec.ControlPlaneRef)

	deployments, sets, machines := &clusterv1.MachineDeploymentList{}, &clusterv1.MachineSetList{}, &clusterv1.MachineList{}
	for _, list := range []client.ObjectList{deployments, sets, machines} {
		err := r.Client.List(ctx, list, client.InNamespace(cluster.Namespace),
			client.MatchingLabels{clusterv1.ClusterNameLabel: cluster.Name}, client.UnsafeDisableDeepCopy)
		if err != nil {
			return nil, fmt.Errorf("list what belongs to Cluster %q: %w", client.ObjectKeyFromObject(cluster), err)
		}
	}
	s.deployments = deployments.Items
	for _, set := range sets.Items {
		if metav1.GetControllerOfNoCopy(&set) == nil {
			s.sets = append(s.sets, set)
		} else {
			s.managedSets++
		}
	}
	for i := range machines.Items {
		machine := &machines.Items[i]
		_, controlPlane := machine.Labels[clusterv1.MachineControlPlaneLabel]
		controlled := metav1.GetControllerOfNoCopy(machine) != nil
		switch {
		case controlPlane && !controlled:
			s.controlPlaneMachines = append(s.controlPlaneMachines, *machine)
		case !controlPlane && !controlled:
			s.workers = append(s.workers, *machine)
		case !controlPlane:
			s.managedWorkers++
		}
	}
	return s, nil
}

// external reads an object that the Cluster refers to, and sees to it that its kind is watched: an object that is not
// there yet must wake the Cluster when it comes.
func (r *Reconciler) external(ctx context.Context, cluster *clusterv1.Cluster, ref clusterv1.ContractVersionedObjectReference) external {
	e := external{ref: ref}
	if !ref.IsDefined() {
		return e
	}
	err := r.watch(ctx, ref)
	if err == nil {
		e.obj, err = r.resolver.Get(ctx, cluster.Namespace, ref)
	}
	if err == nil {
		if e.foreign = contract.Foreign(e.obj, ownerReference(cluster)); e.foreign != nil {
			e.obj = nil
		}
	}
	switch {
	case apierrors.IsNotFound(err):
		e.missing = err
	case err != nil:
		e.failed = fmt.Errorf("read %s of Cluster %q: %w", describe(ref), client.ObjectKeyFromObject(cluster), err)
	}
	return e
}
