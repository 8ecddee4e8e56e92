package integration

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Without a kubeconfig the cluster cannot be reached, and so no event of it brings the controller back.
func TestALostKubeconfigIsMadeAnewWhileTheClusterDoesNotAnswer(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	_, controlPlane := newKubeadmCluster(t, namespace, "prod", 1)
	newFooTemplate(t, namespace, "prod")
	startOperator(t, namespace, "core", "kubeadm")
	wantMachineObjects(t, namespace, 1)
	wantUserData(t, namespace, machines(t, namespace)[0].Name)
	wantCondition(t, controlPlane, controlplanev1.KubeadmControlPlaneInitializedCondition, "False", "NotInitialized", "Waiting for the API server")

	// Events of the start may still be under way and serve the first loss, not those that follow.
	for range 4 {
		lost := get(t, secretNamed(namespace, "prod-kubeconfig"))
		if err := admin.Delete(t.Context(), lost); err != nil {
			t.Fatal(err)
		}
		wantKubeconfigOf(t, namespace, controlPlane, lost.UID)
	}
}

func TestAKubeconfigOfADeletedClusterOfTheSameNameIsTakenOver(t *testing.T) {
	namespace := newNamespace(t)
	// The tests' API server has no garbage collector, as one that is late.
	left := secretNamed(namespace, "prod-kubeconfig")
	left.Labels = map[string]string{clusterv1.ClusterNameLabel: "prod"}
	left.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: controlplanev1.GroupVersion.String(), Kind: "KubeadmControlPlane", Name: "prod", UID: "gone", Controller: new(true),
	}}
	left.Type, left.Data = clusterv1.ClusterSecretType, map[string][]byte{"value": adminKubeconfig(t)}
	create(t, left)
	_, controlPlane := newKubeadmCluster(t, namespace, "prod", 1)
	newFooTemplate(t, namespace, "prod")
	startOperator(t, namespace, "core", "kubeadm")
	wantKubeconfigOf(t, namespace, controlPlane, "")
}

// wantKubeconfigOf waits for a kubeconfig that controlPlane controls, in another Secret than the one of uid.
func wantKubeconfigOf(t *testing.T, namespace string, controlPlane *controlplanev1.KubeadmControlPlane, uid types.UID) {
	t.Helper()
	eventually(t, func() string {
		secret := &corev1.Secret{}
		err := admin.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: "prod-kubeconfig"}, secret)
		switch {
		case apierrors.IsNotFound(err):
			return "there is no kubeconfig"
		case err != nil:
			return err.Error()
		case secret.UID == uid || !metav1.IsControlledBy(secret, controlPlane):
			return "the kubeconfig is not the control plane's own"
		}
		return ""
	})
}
