package lifecycle

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// identityLabels say to whom an object belongs. Every object keeps its own.
var identityLabels = []string{
	clusterv1.ClusterNameLabel, clusterv1.MachineDeploymentNameLabel, clusterv1.MachineSetNameLabel, clusterv1.MachineDeploymentUniqueLabel,
	clusterv1.MachineControlPlaneLabel, clusterv1.MachineControlPlaneNameLabel,
}

// Propagate gives obj the labels and annotations of what it was made from, and takes away those that came from there
// before and are there no more. What others put on obj stays.
func Propagate(obj metav1.Object, labels, annotations map[string]string) {
	hadLabels, hadAnnotations, _ := strings.Cut(obj.GetAnnotations()[PropagatedAnnotation], ";")
	newLabels := replace(obj.GetLabels(), hadLabels, labels)
	newAnnotations := replace(obj.GetAnnotations(), hadAnnotations, annotations)

	if record := recordOf(labels, annotations); record == "" {
		delete(newAnnotations, PropagatedAnnotation)
	} else {
		newAnnotations[PropagatedAnnotation] = record
	}
	obj.SetLabels(newLabels)
	obj.SetAnnotations(newAnnotations)
}

// Propagated tells whether Propagate would change nothing.
func Propagated(obj metav1.Object, labels, annotations map[string]string) bool {
	return obj.GetAnnotations()[PropagatedAnnotation] == recordOf(labels, annotations) &&
		contains(obj.GetLabels(), labels) && contains(obj.GetAnnotations(), annotations)
}

func recordOf(labels, annotations map[string]string) string {
	record := keysOf(labels, identityLabels...) + ";" + keysOf(annotations)
	if record == ";" {
		return ""
	}
	return record
}

func contains(have, want map[string]string) bool {
	for key, value := range want {
		if v, ok := have[key]; !ok || v != value {
			return false
		}
	}
	return true
}

func replace(have map[string]string, before string, want map[string]string) map[string]string {
	out := map[string]string{}
	maps.Copy(out, have)
	for key := range strings.SplitSeq(before, ",") {
		delete(out, key)
	}
	maps.Copy(out, want)
	return out
}

func keysOf(m map[string]string, except ...string) string {
	keys := slices.DeleteFunc(slices.Sorted(maps.Keys(m)), func(key string) bool { return slices.Contains(except, key) })
	return strings.Join(keys, ",")
}

// PropagateSpec copies what a Machine takes over in place, which is what TemplateDifferences does not look at.
func PropagateSpec(into *clusterv1.MachineSpec, from clusterv1.MachineSpec) {
	copied := from.DeepCopy()
	into.MinReadySeconds = copied.MinReadySeconds
	into.ReadinessGates = copied.ReadinessGates
	into.Deletion = copied.Deletion
	into.Taints = copied.Taints
}
