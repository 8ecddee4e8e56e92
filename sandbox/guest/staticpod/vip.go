package staticpod

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// VirtualAddress returns the control-plane endpoint that a kube-vip pod would
// hold, by its container's environment: address or vip_address, and port.
func VirtualAddress(pod *corev1.Pod) (address string, port int, ok bool) {
	for _, container := range pod.Spec.Containers {
		if !strings.Contains(container.Image, "kube-vip") && !strings.Contains(container.Name, "kube-vip") {
			continue
		}
		env := map[string]string{}
		for _, e := range container.Env {
			env[e.Name] = e.Value
		}
		if env["cp_enable"] == "false" {
			continue
		}
		address, port = env["address"], 6443
		if address == "" {
			address = env["vip_address"]
		}
		if p, err := strconv.Atoi(env["port"]); err == nil {
			port = p
		}
		if address != "" {
			return address, port, true
		}
	}
	return "", 0, false
}
