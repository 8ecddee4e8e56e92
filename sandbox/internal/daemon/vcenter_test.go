package daemon

import (
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/millwright-dev/millwright/sandbox/internal/fill"
	"github.com/millwright-dev/millwright/sandbox/internal/vcenter"
)

var server = &vcenter.Server{Address: "127.70.0.1:8443", Username: "u", Password: "p", Thumbprint: "AA:BB"}

func TestTheEnvironmentHasEveryVariableOfCAPVsTemplates(t *testing.T) {
	vars := variables(server, "127.70.0.10")
	for _, name := range strings.Fields("VSPHERE_SERVER VSPHERE_USERNAME VSPHERE_PASSWORD VSPHERE_TLS_THUMBPRINT VSPHERE_DATACENTER " +
		"VSPHERE_DATASTORE VSPHERE_NETWORK VSPHERE_FOLDER VSPHERE_RESOURCE_POOL VSPHERE_TEMPLATE VSPHERE_STORAGE_POLICY " +
		"VSPHERE_SSH_AUTHORIZED_KEY CONTROL_PLANE_ENDPOINT_IP CPI_IMAGE_K8S_VERSION") {
		if vars[name] == "" {
			t.Errorf("%s is missing", name)
		}
	}
}

func TestTheTemplateNeedsTheEnvironmentAndANameOnly(t *testing.T) {
	template, err := os.ReadFile("../../templates/cluster.yaml")
	if err != nil {
		t.Fatal(err)
	}
	vars := variables(server, "127.70.0.10")
	vars["CLUSTER_NAME"] = "demo"
	filled, err := fill.Fill(string(template), func(name string) (string, bool) { v, ok := vars[name]; return v, ok })
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, document := range strings.Split(filled, "\n---\n") {
		var object struct {
			Kind     string `json:"kind"`
			Metadata struct{ Namespace string }
		}
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		if object.Metadata.Namespace != "default" {
			t.Errorf("%s is in namespace %q", object.Kind, object.Metadata.Namespace)
		}
		kinds = append(kinds, object.Kind)
	}
	want := "Cluster VSphereCluster Secret KubeadmControlPlane VSphereMachineTemplate MachineDeployment KubeadmConfigTemplate VSphereMachineTemplate"
	if got := strings.Join(kinds, " "); got != want {
		t.Errorf("kinds %s, want %s", got, want)
	}
}
