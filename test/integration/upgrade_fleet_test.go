package integration

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lifecyclev1 "github.com/millwright-dev/millwright/api/lifecycle/v1alpha1"
)

// tryMachines runs a command of the plugin in a namespace and returns its exit code and what it printed.
func tryMachines(t *testing.T, namespace string, args ...string) (code int, out string) {
	t.Helper()
	dir := t.TempDir()
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(kubeconfig, adminKubeconfig(t), 0o600); err != nil {
		t.Fatal(err)
	}
	binary, err := buildMachines()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), binary, append([]string{"-n", namespace}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "KUBECACHEDIR="+filepath.Join(dir, "cache"))
	text, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(text)
}

func TestAFleetIsUpgradedOneAfterTheOtherUntilTooManyFail(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	for name, stage := range map[string]string{"a": "test", "b": "test", "c": "test", "d": "prod"} {
		u := newUpgradable(t, namespace, name, server.Admin)
		update(t, u.cluster, func() {
			u.cluster.Labels = map[string]string{"stage": stage}
			if name == "a" {
				u.cluster.Spec.Paused = ptr.To(true)
			}
		})
	}
	startOperator(t, namespace, "upgrade")
	// Budgets of other tests are in the cluster too.
	fleet := func(more ...string) (int, string) {
		return tryMachines(t, namespace, append([]string{"upgrade", "-l", "stage=test", "--to", "v1.37.2", "--force", "DisruptionBudgets"}, more...)...)
	}
	begun := func() []string {
		list := &lifecyclev1.ClusterUpgradeList{}
		if err := admin.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
		var names []string
		for i := range list.Items {
			names = append(names, list.Items[i].Spec.ClusterName)
		}
		slices.Sort(names)
		return names
	}

	code, out := fleet("--timeout", "50s")
	if code != 1 || !strings.Contains(out, "1 of 3 clusters failed") || !strings.Contains(out, "set spec.paused to false") {
		t.Errorf("with one that is blocked: exit code %d:\n%s", code, out)
	}
	if got := begun(); !slices.Equal(got, []string{"a"}) {
		t.Errorf("begun were %v; want a alone", got)
	}
	// Two may fail now, and one runs at a time. Nobody replaces its machines.
	code, out = fleet("--max-failures", "2", "--timeout", "8s")
	if code != 124 || !strings.Contains(out, "b: control-plane v1.36.3 -> v1.37.2: Running") || !strings.Contains(out, "c: not begun") {
		t.Errorf("with one more that may fail: exit code %d:\n%s", code, out)
	}
	if got := begun(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("begun were %v; want a and b", got)
	}
}
