package controlplane

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/contract"
	"github.com/millwright-dev/millwright/internal/lifecycle"
	"github.com/millwright-dev/millwright/internal/patch"
)

// keepUp brings onto a Machine what it takes over from the control plane's template in place, and our hook. One that is
// being deleted takes over the timeouts alone: by them a user lets a deletion go on that is stuck.
func keepUp(s *snapshot, machine *clusterv1.Machine) {
	template := s.controlPlane.Spec.MachineTemplate.Spec
	machine.Spec.Deletion = clusterv1.MachineDeletionSpec{
		NodeDrainTimeoutSeconds:        template.Deletion.NodeDrainTimeoutSeconds,
		NodeVolumeDetachTimeoutSeconds: template.Deletion.NodeVolumeDetachTimeoutSeconds,
		NodeDeletionTimeoutSeconds:     template.Deletion.NodeDeletionTimeoutSeconds,
	}
	if machine.Spec.Deletion.NodeDeletionTimeoutSeconds == nil {
		machine.Spec.Deletion.NodeDeletionTimeoutSeconds = ptr.To[int32](defaultNodeDeletionTimeout)
	}
	if !machine.DeletionTimestamp.IsZero() {
		return
	}
	propagate(s, machine)
	machine.Annotations[hook] = ""
	machine.Spec.ReadinessGates = readinessGates(s)
	machine.Spec.Taints = template.Taints
}

// propagate gives an object of a Machine the labels and annotations of the control plane's template.
func propagate(s *snapshot, obj metav1.Object) {
	lifecycle.Propagate(obj, machineLabels(s), s.controlPlane.Spec.MachineTemplate.ObjectMeta.Annotations)
}

// keepObjectsUp brings the template's labels and annotations onto the objects that belong to Machines.
func (r *Reconciler) keepObjectsUp(ctx context.Context, s *snapshot, of *replica) error {
	var objects []client.Object
	var errs []error
	if of.config != nil {
		objects = append(objects, of.config)
		errs = append(errs, r.recordExpiry(ctx, s, of))
	}
	if of.infrastructure != nil {
		objects = append(objects, of.infrastructure)
	}
	for _, obj := range objects {
		if of.deleting() || !obj.GetDeletionTimestamp().IsZero() ||
			lifecycle.Propagated(obj, machineLabels(s), s.controlPlane.Spec.MachineTemplate.ObjectMeta.Annotations) {
			continue
		}
		helper := patch.New(obj, r.Client)
		propagate(s, obj)
		if err := helper.Patch(ctx, obj); client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("bring labels and annotations of the template onto Machine %q: %w", of.machine.Name, err))
		}
	}
	return errors.Join(errs...)
}

// readinessGates are our own conditions and those that the user adds.
func readinessGates(s *snapshot) []clusterv1.MachineReadinessGate {
	var gates []clusterv1.MachineReadinessGate
	for _, conditionType := range s.gates() {
		gates = append(gates, clusterv1.MachineReadinessGate{ConditionType: conditionType})
	}
	for _, gate := range s.controlPlane.Spec.MachineTemplate.Spec.ReadinessGates {
		if !slices.ContainsFunc(gates, func(have clusterv1.MachineReadinessGate) bool { return have.ConditionType == gate.ConditionType }) {
			gates = append(gates, gate)
		}
	}
	return gates
}

func machineLabels(s *snapshot) map[string]string {
	labels := maps.Clone(s.controlPlane.Spec.MachineTemplate.ObjectMeta.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[clusterv1.ClusterNameLabel] = s.cluster.Name
	labels[clusterv1.MachineControlPlaneLabel] = ""
	labels[clusterv1.MachineControlPlaneNameLabel] = contract.LabelValue(s.controlPlane.Name)
	return labels
}
