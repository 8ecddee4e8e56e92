package kubelet

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/millwright-dev/millwright/sandbox/guest/staticpod"
)

// Annotations of static pods (pkg/kubelet/types of Kubernetes).
const (
	annotationSource = "kubernetes.io/config.source"
	annotationHash   = "kubernetes.io/config.hash"
)

// mirrorPod returns the object that shows a static pod to the API server. The
// NodeRestriction plugin wants the Node as its owner, by UID.
func mirrorPod(state staticpod.State, node string, nodeUID types.UID) *corev1.Pod {
	pod := state.Pod.DeepCopy()
	pod.Name = mirrorName(state, node)
	pod.Status = corev1.PodStatus{}
	pod.UID, pod.ResourceVersion, pod.CreationTimestamp = "", "", metav1.Time{}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[annotationSource] = "file"
	pod.Annotations[annotationHash] = state.Hash
	pod.Annotations[corev1.MirrorPodAnnotationKey] = state.Hash
	isController := true
	pod.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "v1", Kind: "Node", Name: node, UID: nodeUID, Controller: &isController}}
	pod.Spec.NodeName = node
	pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{
		Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute})
	return pod
}

func mirrorName(state staticpod.State, node string) string {
	return state.Pod.Name + "-" + node
}

func isMirror(pod *corev1.Pod) bool {
	_, ok := pod.Annotations[corev1.MirrorPodAnnotationKey]
	return ok
}

// mirrorAction is what to do about one static pod or mirror pod.
type mirrorAction int

const (
	mirrorKeep mirrorAction = iota
	mirrorCreate
	mirrorDelete
)

// planMirror decides between the static pod, nil when there is none, and the
// mirror pod that the API server has, nil when there is none. A stale one is
// deleted first; its deletion brings us here again.
func planMirror(state *staticpod.State, mirror *corev1.Pod) mirrorAction {
	switch {
	case mirror == nil && state == nil:
		return mirrorKeep
	case mirror == nil:
		return mirrorCreate
	case state == nil, mirror.DeletionTimestamp != nil, mirror.Annotations[corev1.MirrorPodAnnotationKey] != state.Hash:
		return mirrorDelete
	default:
		return mirrorKeep
	}
}
