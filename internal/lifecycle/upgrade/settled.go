package upgrade

import (
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/contract"
)

// Unsettled says what a MachineDeployment still has to do until all of its machines are available and as it asks for;
// empty when nothing.
func Unsettled(o Objects, d *clusterv1.MachineDeployment) string {
	want := ptr.Deref(d.Spec.Replicas, 1)
	s := d.Status
	return unsettled(d.Generation, s.ObservedGeneration, want, o.MachinesOf(d.Name),
		contract.Counters{Replicas: s.Replicas, UpToDate: s.UpToDateReplicas, Ready: s.ReadyReplicas, Available: s.AvailableReplicas})
}

// ControlPlaneUnsettled says the same of the control plane.
func ControlPlaneUnsettled(o Objects) string {
	if o.ControlPlane == nil {
		return ""
	}
	counters := contract.Replicas(o.ControlPlane)
	if counters.Available == nil {
		// A provider of the older contract counts ready ones only.
		counters.Available = counters.Ready
	}
	machines := o.ControlPlaneMachines()
	return unsettled(o.ControlPlane.GetGeneration(), observedGeneration(o.ControlPlane), ptr.Deref(counters.Desired, int32(len(machines))), machines, counters)
}

func unsettled(generation, observed int64, want int32, machines []*clusterv1.Machine, c contract.Counters) string {
	leaving := 0
	for _, m := range machines {
		if !m.DeletionTimestamp.IsZero() {
			leaving++
		}
	}
	have, upToDate, available := ptr.Deref(c.Replicas, 0), ptr.Deref(c.UpToDate, 0), ptr.Deref(c.Available, 0)
	switch {
	case observed < generation:
		return "its controller has not seen the last change yet"
	case upToDate < want:
		return fmt.Sprintf("%d of %d machines are up to date", upToDate, want)
	case leaving > 0:
		return fmt.Sprintf("there are %d machines, %d of them on their way out, and there are to be %d", len(machines), leaving, want)
	case have != want:
		return fmt.Sprintf("its controller counts %d machines, and there are to be %d", have, want)
	case available < want:
		return fmt.Sprintf("%d of %d machines are available", available, want)
	}
	return ""
}

func observedGeneration(obj *unstructured.Unstructured) int64 {
	n, _, _ := unstructured.NestedInt64(obj.Object, "status", "observedGeneration")
	return n
}

func condition(m *clusterv1.Machine, kind string) *metav1.Condition { return conditions.Get(m, kind) }

// because words a condition that is not true.
func because(c *metav1.Condition) string {
	switch {
	case c == nil:
		return "nothing is known of it yet"
	case c.Message != "":
		return c.Message
	}
	return c.Reason
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
