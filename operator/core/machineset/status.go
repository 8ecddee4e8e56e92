package machineset

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/lifecycle"
)

// observation is what a reconcile knows at its end.
type observation struct {
	// machines of the set, the new ones too.
	machines []*clusterv1.Machine
	// blocked says why no Machine can be created.
	blocked []string
	// templates that the Machines are made from; none where one could not be read.
	templates []*unstructured.Unstructured
	// unset says why spec.replicas could not be defaulted.
	unset error
}

// setStatus writes the counters and conditions of a set from what was seen.
func setStatus(set *clusterv1.MachineSet, o observation) {
	set.Status.ObservedGeneration = set.Generation
	set.Status.Replicas = ptr.To(int32(len(o.machines)))
	set.Status.ReadyReplicas = lifecycle.CountTrue(o.machines, clusterv1.MachineReadyCondition)
	set.Status.AvailableReplicas = lifecycle.CountTrue(o.machines, clusterv1.MachineAvailableCondition)
	set.Status.UpToDateReplicas = lifecycle.CountTrue(o.machines, clusterv1.MachineUpToDateCondition)
	set.Status.Versions = lifecycle.CountVersions(o.machines)
	if selector, err := metav1.LabelSelectorAsSelector(&set.Spec.Selector); err == nil {
		set.Status.Selector = selector.String()
	}

	have, want := len(o.machines), int(ptr.Deref(set.Spec.Replicas, 0))
	deleting := conditions.False(clusterv1.MachineSetDeletingCondition, clusterv1.MachineSetNotDeletingReason, "")
	if !set.DeletionTimestamp.IsZero() {
		want = 0
		deleting = conditions.True(clusterv1.MachineSetDeletingCondition, clusterv1.MachineSetDeletingReason, "%s", lifecycle.WaitingForMachines(o.machines))
	}
	scalingUp, scalingDown := lifecycle.ScalingUp(have, want, o.blocked), lifecycle.ScalingDown(have, want)
	if o.unset != nil {
		scalingUp = lifecycle.ReplicasUnset(clusterv1.MachineSetScalingUpCondition, o.unset)
		scalingDown = lifecycle.ReplicasUnset(clusterv1.MachineSetScalingDownCondition, o.unset)
	}
	for _, condition := range []metav1.Condition{
		lifecycle.MachinesReady(o.machines),
		machinesUpToDate(set, o),
		scalingUp,
		scalingDown,
		lifecycle.Remediating(o.machines),
		deleting,
	} {
		conditions.Set(set, condition)
	}
	if len(o.templates) > 0 {
		conditions.Set(set, lifecycle.ContentChanged(o.machines, o.templates...))
	}
}

func machinesUpToDate(set *clusterv1.MachineSet, o observation) metav1.Condition {
	if metav1.GetControllerOf(set) == nil && len(o.machines) > 0 {
		return conditions.Unknown(clusterv1.MachineSetMachinesUpToDateCondition, clusterv1.MachineSetMachinesUpToDateUnknownReason,
			"No MachineDeployment owns this MachineSet, so nothing says which Machines are up to date")
	}
	return lifecycle.MachinesUpToDate(o.machines)
}
