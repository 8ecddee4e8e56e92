package integration

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/test/apiserver"
)

// variable matches ${NAME} and ${NAME:=default} as cluster templates use them.
var variable = regexp.MustCompile(`\$\{(\w+)(?::=([^}]*))?\}`)

// capvTemplate reads CAPV's cluster template, which stands beside this repository, with its variables filled in.
func capvTemplate(t *testing.T, values map[string]string) []byte {
	t.Helper()
	path := os.Getenv("MILLWRIGHT_CAPV_TEMPLATE")
	if path == "" {
		path = filepath.Join("..", "..", "..", "shared", "clusters", "capv-cluster-template.yaml")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		message := "no CAPV template: name a copy of CAPV's templates/cluster-template.yaml in MILLWRIGHT_CAPV_TEMPLATE: " + err.Error()
		if os.Getenv("CI") != "" {
			t.Fatal(message)
		}
		t.Skip(message)
	}
	return variable.ReplaceAllFunc(data, func(match []byte) []byte {
		parts := variable.FindSubmatch(match)
		if value, ok := values[string(parts[1])]; ok {
			return []byte(value)
		}
		return parts[2]
	})
}

func TestTheCAPVTemplateIsAcceptedUnchangedAndGetsItsDefaults(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	objects, err := apiserver.Decode(capvTemplate(t, map[string]string{
		"CLUSTER_NAME": "capv", "NAMESPACE": namespace, "KUBERNETES_VERSION": "v1.37.2",
		"CONTROL_PLANE_MACHINE_COUNT": "3", "WORKER_MACHINE_COUNT": "2", "CONTROL_PLANE_ENDPOINT_IP": "127.0.0.9",
		"VSPHERE_SERVER": "127.0.0.8", "VSPHERE_TLS_THUMBPRINT": "AA:BB", "VSPHERE_TEMPLATE": "ubuntu", "VSPHERE_NETWORK": "VM Network",
		"VSPHERE_SSH_AUTHORIZED_KEY": "ssh-ed25519 AAAA",
	}))
	if err != nil {
		t.Fatal(err)
	}
	for _, obj := range objects {
		if err := admin.Create(t.Context(), obj); err != nil {
			t.Errorf("%s %q was refused: %v", obj.GetKind(), obj.GetName(), err)
		}
	}
	if t.Failed() {
		t.FailNow()
	}

	startOperator(t, namespace, "core")
	deployment := &clusterv1.MachineDeployment{}
	deployment.Namespace, deployment.Name = namespace, "capv-md-0"
	eventually(t, func() string {
		selector := get(t, deployment).Spec.Selector.MatchLabels
		if selector[clusterv1.MachineDeploymentNameLabel] != deployment.Name {
			return "the empty selector was not defaulted"
		}
		return ""
	})
	if *deployment.Spec.Template.Spec.Deletion.NodeDeletionTimeoutSeconds != 0 {
		t.Error("an explicit zero was defaulted away")
	}
	// Workers wait for a control plane, whose controller does not run here.
	controlPlane := &controlplanev1.KubeadmControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "capv"}}
	//lint:ignore SA1019 The contract's status.version is what providers of any kind report.
	status(t, controlPlane, func() { controlPlane.Status.Version = "v1.37.2" })
	eventually(t, func() string {
		if len(machines(t, namespace)) != 2 {
			return "the workers were not created"
		}
		return ""
	})
}
