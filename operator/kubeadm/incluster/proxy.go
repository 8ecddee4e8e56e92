package incluster

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
)

// proxyName is that of kube-proxy's DaemonSet and its container.
const proxyName = "kube-proxy"

// moveProxy sets the image of kube-proxy for a Kubernetes version, and tells whether it was another one.
func moveProxy(live *appsv1.DaemonSet, spec bootstrapv1.ClusterConfiguration, version string) (changed bool, problem string) {
	container := containerOf(&live.Spec.Template.Spec, proxyName)
	if container == nil {
		return false, "DaemonSet kube-system/kube-proxy has no container kube-proxy: its image stays: if it is not kubeadm's, set the annotation " +
			skipKubeProxy + " on the control plane"
	}
	// A tag cannot hold a plus sign; kubeadm writes an underscore for it.
	want := parseImage(container.Image).at(spec.ImageRepository, strings.ReplaceAll(version, "+", "_")).String()
	changed = container.Image != want
	container.Image = want
	return changed, ""
}

func containerOf(pod *corev1.PodSpec, name string) *corev1.Container {
	for i := range pod.Containers {
		if pod.Containers[i].Name == name {
			return &pod.Containers[i]
		}
	}
	return nil
}
