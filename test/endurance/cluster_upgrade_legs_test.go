package endurance

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/millwright-dev/millwright/test/sandboxtest"
)

func TestAClusterGoesTwoMinorsAndReplacesItsWorkersOnce(t *testing.T) {
	slow(t)
	if os.Getenv("ENDURANCE_LARGE") == "" {
		t.Skip("builds a third Kubernetes version, minutes where the cache has none: ENDURANCE_LARGE=1 runs it")
	}
	t.Parallel()
	const cluster, workers, oldest = "legs", "legs-md-0", "v1.35.4"
	bed.Create(t, cluster, 2, "KUBERNETES_VERSION="+oldest, "VSPHERE_TEMPLATE=ubuntu-2404-kube-"+oldest)
	bed.Release(t, cluster, "kube-proxy", "1.35.0")
	bed.Release(t, cluster, "coredns", "1.13.1")
	kubeconfig := bed.Kubeconfig(t, cluster)
	chronicle := bed.Chronicle(t, cluster)
	chronicle.Addons(t, kubeconfig, sandboxtest.Version)
	_, settle := writing(t, kubeconfig)

	out := bed.Run(t, "kubectl", "machines", "upgrade", cluster, "--to", sandboxtest.Version, "--wait", "--timeout", "8m")
	t.Logf("told:\n%s\nevents:\n%s", out, chronicle)
	var got []string
	for _, made := range chronicle.All() {
		got = append(got, strings.TrimSpace(made.Owner+" "+made.Version))
		if strings.HasPrefix(made.Owner, "addon kube-proxy") && made.Version == sandboxtest.Version && made.Left[""] > 0 {
			t.Errorf("%v is newer than an API server", made)
		}
	}
	want := []string{
		former, "addon kube-proxy " + former, "addon coredns v1.14.2",
		sandboxtest.Version, "addon kube-proxy " + sandboxtest.Version, "addon coredns v1.14.6",
		workers + " " + sandboxtest.Version, workers + " " + sandboxtest.Version,
	}
	if !slices.Equal(want, got) {
		t.Errorf("the order is %q\nwant %q", got, want)
	}
	bed.WantExactly(t, cluster, kubeconfig, 3)
	settle()
	bed.DeleteCluster(t, cluster)
}
