package kubeadm

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestThePortOfAnAPIServerIsWhatKubeadmWroteOnItsPod(t *testing.T) {
	for address, want := range map[string]int{"10.0.0.2:6444": 6444, "[fd00::2]:8443": 8443, "": 6443, "10.0.0.2": 6443, "10.0.0.2:https": 6443} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{apiServerAddress: address}}}
		if got := APIServerPort(pod); got != want {
			t.Errorf("APIServerPort of %q = %d, want %d", address, got, want)
		}
	}
}
