package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/millwright-dev/millwright/test/sandboxtest"
)

// capvTemplate is the cluster template as CAPV publishes it: it stands beside
// this repository, not in it.
func capvTemplate(t *testing.T) string {
	t.Helper()
	path := os.Getenv("MILLWRIGHT_CAPV_TEMPLATE")
	if path == "" {
		path = filepath.Join(bed.Root, "..", "shared", "clusters", "capv-cluster-template.yaml")
	}
	if _, err := os.Stat(path); err != nil {
		message := "no CAPV template at " + path + ": name a copy of CAPV's templates/cluster-template.yaml in MILLWRIGHT_CAPV_TEMPLATE"
		if os.Getenv("CI") != "" {
			t.Fatal(message)
		}
		t.Skip(message)
	}
	return path
}

func TestAnUnchangedCAPVTemplateBecomesAClusterThatScalesAndGoes(t *testing.T) {
	const cluster = "capv"
	bed.Apply(t, capvTemplate(t), "CLUSTER_NAME="+cluster, "NAMESPACE=default", "KUBERNETES_VERSION="+sandboxtest.Version,
		"CONTROL_PLANE_MACHINE_COUNT=3", "WORKER_MACHINE_COUNT=2", "CPI_IMAGE_K8S_VERSION=v1.36.0",
		"CONTROL_PLANE_ENDPOINT_IP="+bed.Endpoint(t))
	if got := bed.Names(t, "clusterresourcesets.addons.cluster.x-k8s.io"); !slices.Equal(got, []string{cluster + "-crs-0"}) {
		t.Errorf("ClusterResourceSets %v, want the one of the template", got)
	}
	bed.Run(t, "kubectl", "machines", "tree", cluster, "--watch", "--until", "ready", "--timeout", "8m")

	kubeconfig := bed.Kubeconfig(t, cluster)
	bed.WantExactly(t, cluster, kubeconfig, 5)
	if got := bed.Run(t, "kubectl", "--kubeconfig", kubeconfig, "version", "-o", "json"); !strings.Contains(got, sandboxtest.Version) {
		t.Errorf("the workload cluster does not say that it is %s: %s", sandboxtest.Version, got)
	}

	t.Run("certificates", func(t *testing.T) { testTheEndOfCertificatesIsRecorded(t, cluster, 3) })
	t.Run("renewal", func(t *testing.T) { testARenewedCertificateIsSeen(t, cluster) })

	deployment := cluster + "-md-0"
	for _, replicas := range []int{6, 1} {
		bed.Run(t, "kubectl", "machines", "scale", deployment, "--replicas", fmt.Sprint(replicas), "--wait", "--timeout", "8m")
		bed.WantExactly(t, cluster, kubeconfig, 3+replicas)
	}

	t.Run("addons", func(t *testing.T) { testAddonsArePutOnceAndOnlyFromWhatTheyWereMadeOf(t, cluster, kubeconfig) })
	t.Run("adoption", func(t *testing.T) { testWhatKubeadmInstalledIsAdoptedWithoutARestart(t, cluster, kubeconfig) })

	bed.DeleteCluster(t, cluster)
}
