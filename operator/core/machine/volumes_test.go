package machine

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestClaimsOfPodsThatStayAreThoseThatNoDrainFrees(t *testing.T) {
	now := metav1.Now()
	claim := corev1.Volume{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}
	ephemeral := corev1.Volume{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}}
	other := corev1.Volume{VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
	pods := []corev1.Pod{
		{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "daemon"}, Spec: corev1.PodSpec{Volumes: []corev1.Volume{claim, ephemeral, other}}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: "b", Name: "leaving", DeletionTimestamp: &now}, Spec: corev1.PodSpec{Volumes: []corev1.Volume{claim}}},
	}
	if d := cmp.Diff([]string{"a/data", "a/daemon-scratch"}, claimsOf(pods)); d != "" {
		t.Errorf("claims (-want +got):\n%s", d)
	}
}
