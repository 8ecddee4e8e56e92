package kubeadm

import (
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

const (
	// apiServerAddress is the annotation by which kubeadm tells where an API server listens (k8s.io/kubernetes,
	// cmd/kubeadm/app/constants).
	apiServerAddress = "kubeadm.kubernetes.io/kube-apiserver.advertise-address.endpoint"
	// defaultAPIServerPort is kubeadm's.
	defaultAPIServerPort = 6443
)

// APIServerPort returns the port on which the API server of a static pod of kubeadm's listens.
func APIServerPort(pod *corev1.Pod) int {
	if _, port, err := net.SplitHostPort(pod.Annotations[apiServerAddress]); err == nil {
		if n, err := strconv.Atoi(port); err == nil {
			return n
		}
	}
	return defaultAPIServerPort
}
