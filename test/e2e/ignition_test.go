package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millwright-dev/millwright/test/sandboxtest"
)

func TestMachinesWithIgnitionBecomeACluster(t *testing.T) {
	const cluster = "ignition"
	template, err := os.ReadFile(filepath.Join(bed.Root, "sandbox/templates/cluster.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(template)
	for _, change := range [][2]string{
		// Nobody fills in templates of cloud-init's.
		{"name: '{{ local_hostname }}'", "criSocket: unix:///run/containerd/containerd.sock"},
		{`hostnamectl set-hostname "{{ ds.meta_data.hostname }}"`, "systemctl is-active containerd"},
		{"  kubeadmConfigSpec:\n", "  kubeadmConfigSpec:\n    format: ignition\n"},
		{"  template:\n    spec:\n      joinConfiguration:\n", "  template:\n    spec:\n      format: ignition\n      joinConfiguration:\n"},
	} {
		if !strings.Contains(text, change[0]) {
			t.Fatalf("the template has no %q any more", change[0])
		}
		text = strings.ReplaceAll(text, change[0], change[1])
	}
	path := filepath.Join(t.TempDir(), "cluster.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	bed.Apply(t, path, "CLUSTER_NAME="+cluster, "KUBERNETES_VERSION="+sandboxtest.Version, "CONTROL_PLANE_MACHINE_COUNT=3",
		"WORKER_MACHINE_COUNT=1", "CONTROL_PLANE_ENDPOINT_IP="+bed.Endpoint(t))
	bed.WaitReady(t, cluster)
	bed.WantExactly(t, cluster, bed.Kubeconfig(t, cluster), 4)
	bed.WantMembers(t, cluster, 3)
	for _, machine := range bed.Machines(t, cluster) {
		if got := bed.Run(t, "kubectl", "get", "secret", machine, "-o", "jsonpath={.data.format}"); got != "aWduaXRpb24=" {
			t.Errorf("user data of %s is of format %q in base64, want ignition", machine, got)
		}
	}
	bed.DeleteCluster(t, cluster)
}
