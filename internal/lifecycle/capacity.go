package lifecycle

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// capacityNames are cluster-autoscaler's words for resources of a node. A resource of any other name with a vendor's
// prefix is a kind of GPU to it, of which it knows one.
var capacityNames = map[corev1.ResourceName]string{
	corev1.ResourceCPU:              "cpu",
	corev1.ResourceMemory:           "memory",
	corev1.ResourceEphemeralStorage: "ephemeral-disk",
	corev1.ResourcePods:             "maxPods",
}

const (
	capacityGPUType  = "gpu-type"
	capacityGPUCount = "gpu-count"
)

// AnnotateCapacity tells cluster-autoscaler on obj, a MachineDeployment, what a node of it would offer, so that it can
// scale from none. capacity is status.capacity of the infrastructure template; nil where that says nothing. What a
// user wrote stays, and what came from a template goes with it.
func AnnotateCapacity(obj metav1.Object, capacity corev1.ResourceList) {
	annotations := map[string]string{}
	maps.Copy(annotations, obj.GetAnnotations())
	for name := range strings.SplitSeq(annotations[CapacityAnnotation], ",") {
		delete(annotations, CapacityPrefix+name)
	}
	var ours []string
	for name, value := range capacityWords(capacity) {
		if _, users := annotations[CapacityPrefix+name]; !users {
			annotations[CapacityPrefix+name] = value
			ours = append(ours, name)
		}
	}
	slices.Sort(ours)
	annotations[CapacityAnnotation] = strings.Join(ours, ",")
	if len(ours) == 0 {
		delete(annotations, CapacityAnnotation)
	}
	obj.SetAnnotations(annotations)
}

func capacityWords(capacity corev1.ResourceList) map[string]string {
	words := map[string]string{}
	var gpus []string
	for name, quantity := range capacity {
		if word, known := capacityNames[name]; known {
			words[word] = quantity.String()
		} else if strings.Contains(string(name), "/") {
			gpus = append(gpus, string(name))
		}
	}
	if len(gpus) > 0 {
		first := slices.Min(gpus)
		count := capacity[corev1.ResourceName(first)]
		words[capacityGPUType], words[capacityGPUCount] = first, count.String()
	}
	return words
}

// ParseCapacity reads a resource list as an object of any kind holds it. What is no quantity is left out.
func ParseCapacity(values map[string]string) corev1.ResourceList {
	var list corev1.ResourceList
	for name, value := range values {
		quantity, err := resource.ParseQuantity(value)
		if err != nil {
			continue
		}
		if list == nil {
			list = corev1.ResourceList{}
		}
		list[corev1.ResourceName(name)] = quantity
	}
	return list
}
