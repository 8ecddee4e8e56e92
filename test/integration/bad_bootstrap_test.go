package integration

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coreos/ignition/v2/config/v3_3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/millwright-dev/millwright/api/infrastructure/v1beta2"
	"github.com/millwright-dev/millwright/internal/pki"
)

func TestAnAuthorityOfTheUsersThatCannotServeIsToldByItsSecret(t *testing.T) {
	good, err := pki.NewCA("kubernetes", pki.Options{Algorithm: pki.ECDSAP256})
	if err != nil {
		t.Fatal(err)
	}
	other, err := pki.NewCA("kubernetes", pki.Options{Algorithm: pki.ECDSAP256})
	if err != nil {
		t.Fatal(err)
	}
	expired, err := pki.NewCA("kubernetes", pki.Options{Algorithm: pki.ECDSAP256, Validity: time.Hour, Now: func() time.Time { return time.Now().Add(-24 * time.Hour) }})
	if err != nil {
		t.Fatal(err)
	}
	client, err := pki.NewClientCert(good, "admin", nil, pki.Options{Algorithm: pki.ECDSAP256})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		pair pki.KeyPair
		says string
	}{
		"key":       {pki.KeyPair{Cert: good.Cert, Key: other.Key}, "tls.key: private key does not belong to certificate"},
		"expired":   {expired, "tls.crt: certificate authority \"kubernetes\" expired on "},
		"authority": {client, "tls.crt: certificate \"admin\" is not a certificate authority"},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := newNamespace(t)
			secret := secretNamed(namespace, "prod-ca")
			secret.Data = map[string][]byte{"tls.crt": tc.pair.Cert, "tls.key": tc.pair.Key}
			create(t, secret)
			_, controlPlane := newKubeadmCluster(t, namespace, "prod", 1)
			newFooTemplate(t, namespace, "prod")
			startOperator(t, namespace, "core", "kubeadm")

			wantCondition(t, controlPlane, controlplanev1.KubeadmControlPlaneCertificatesAvailableCondition, "False", controlplanev1.KubeadmControlPlaneCertificatesNotAvailableReason,
				fmt.Sprintf("Secret %q", namespace+"/prod-ca"), tc.says, "replace its tls.crt and tls.key")
			if after := get(t, secretNamed(namespace, "prod-ca")); string(after.Data["tls.crt"]) != string(tc.pair.Cert) || len(after.OwnerReferences) > 0 {
				t.Error("the user's Secret was touched")
			}
			update(t, secret, func() { secret.Data = map[string][]byte{"tls.crt": good.Cert, "tls.key": good.Key} })
			wantCondition(t, controlPlane, controlplanev1.KubeadmControlPlaneCertificatesAvailableCondition, "True", "Available")
		})
	}
}

func TestAnUnknownFeatureGateIsToldByItsFieldBeforeAMachineIsMade(t *testing.T) {
	namespace := newNamespace(t)
	_, controlPlane := newKubeadmCluster(t, namespace, "prod", 1, func(k *controlplanev1.KubeadmControlPlane) {
		k.Spec.KubeadmConfigSpec.ClusterConfiguration.FeatureGates = map[string]bool{"RootlessControlPlain": true}
	})
	newFooTemplate(t, namespace, "prod")
	startOperator(t, namespace, "core", "kubeadm")
	wantCondition(t, controlPlane, controlplanev1.KubeadmControlPlaneScalingUpCondition, "True", controlplanev1.KubeadmControlPlaneScalingUpReason,
		"spec.kubeadmConfigSpec.clusterConfiguration.featureGates", `no gate "RootlessControlPlain"`, "it knows RootlessControlPlane")
	if made := machines(t, namespace); len(made) != 0 {
		t.Errorf("%d Machines were made", len(made))
	}
	update(t, controlPlane, func() { controlPlane.Spec.KubeadmConfigSpec.ClusterConfiguration.FeatureGates = nil })
	wantMachineObjects(t, namespace, 1)
}

func TestAMachineWithIgnitionGetsIgnitionOrIsToldWhyNot(t *testing.T) {
	for name, tc := range map[string]struct {
		name  string
		wants string
	}{
		"what Ignition can do":       {"", "True"},
		"a template of cloud-init's": {"{{ local_hostname }}", "False"},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := newNamespace(t)
			newKubeadmCluster(t, namespace, "prod", 1, func(k *controlplanev1.KubeadmControlPlane) {
				k.Spec.KubeadmConfigSpec = bootstrapv1.KubeadmConfigSpec{
					Format: bootstrapv1.Ignition, BootCommands: []string{"true"},
					InitConfiguration: bootstrapv1.InitConfiguration{NodeRegistration: bootstrapv1.NodeRegistrationOptions{Name: tc.name}},
				}
			})
			newFooTemplate(t, namespace, "prod")
			startOperator(t, namespace, "core", "kubeadm")
			wantMachineObjects(t, namespace, 1)
			config := &bootstrapv1.KubeadmConfig{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: machines(t, namespace)[0].Name}}
			if tc.wants == "False" {
				wantCondition(t, config, bootstrapv1.KubeadmConfigDataSecretAvailableCondition, "False", bootstrapv1.KubeadmConfigDataSecretNotAvailableReason,
					"spec.format is ignition", `template of cloud-init's, "{{ local_hostname }}"`, "spec.preKubeadmCommands")
				return
			}
			wantCondition(t, config, bootstrapv1.KubeadmConfigDataSecretAvailableCondition, "True", bootstrapv1.KubeadmConfigDataSecretAvailableReason,
				"Ignition cannot express, and does without: spec.bootCommands")
			data := get(t, secretNamed(namespace, config.Name)).Data
			parsed, _, err := v3_3.Parse(data["value"])
			if err != nil || string(data["format"]) != "ignition" {
				t.Fatalf("format %q: %v", data["format"], err)
			}
			var paths []string
			for _, file := range parsed.Storage.Files {
				paths = append(paths, file.Path)
			}
			for _, path := range []string{"/etc/kubernetes/pki/ca.key", "/etc/kubeadm.sh", "/etc/kubeadm.yml"} {
				if !slices.Contains(paths, path) {
					t.Errorf("no file %s among %v", path, paths)
				}
			}
		})
	}
}

func TestBootstrapDataOverTheLimitOfVSphereIsTold(t *testing.T) {
	bed := newVSphereBed(t)
	bed.provisioned(t)
	noise := make([]byte, 60_000)
	rand.NewChaCha8([32]byte{}).Read(noise)
	machine := bed.machine(t, "prod-1", func(m *infrav1.VSphereMachine) {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name + "-bootstrap"}}
		patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"data":{"value":%q}}`, base64.StdEncoding.EncodeToString(noise)))
		if err := admin.Patch(t.Context(), secret, patch); err != nil {
			t.Fatal(err)
		}
	})
	told := wantState(t, machine, infrav1.VirtualMachineProvisionedCondition, metav1.ConditionFalse, infrav1.InvalidSpecReason)
	for _, says := range []string{"60000 bytes", "65535", "spec.files"} {
		if !strings.Contains(told.Message, says) {
			t.Errorf("message is %q, want %q in it", told.Message, says)
		}
	}
}
