package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// buildMachines builds the plugin, once for all tests.
var buildMachines = sync.OnceValues(func() (string, error) {
	binary := filepath.Join(scratch, "kubectl-machines")
	out, err := exec.Command("go", "build", "-o", binary, "../../cmd/kubectl-machines").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build kubectl-machines: %w\n%s", err, out)
	}
	return binary, nil
})

// runMachines runs a command of the plugin in a namespace.
func runMachines(t *testing.T, namespace string, args ...string) {
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
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl machines %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// someMachine returns a Machine of a namespace that is not being deleted.
func someMachine(t *testing.T, namespace string) *clusterv1.Machine {
	t.Helper()
	all := machines(t, namespace)
	i := slices.IndexFunc(all, func(m clusterv1.Machine) bool { return m.DeletionTimestamp == nil })
	if i < 0 {
		t.Fatalf("no live machine among %d", len(all))
	}
	return &all[i]
}

// wantRemoved checks that very Machine to be gone: its name may be used again.
func wantRemoved(t *testing.T, machine *clusterv1.Machine) {
	t.Helper()
	eventually(t, func() string {
		for _, m := range machines(t, machine.Namespace) {
			if m.UID == machine.UID {
				return fmt.Sprintf("Machine %q is still there", m.Name)
			}
		}
		return ""
	})
}

func wantCount(t *testing.T, namespace string, want int) {
	t.Helper()
	eventually(t, func() string {
		if have := len(machines(t, namespace)); have != want {
			return fmt.Sprintf("%d Machines, want %d", have, want)
		}
		return ""
	})
}

func TestReplacingAMachineNeverHasFewerThanBefore(t *testing.T) {
	t.Parallel()
	deployment := rollingDeployment(t, 3)
	startOperator(t, deployment.Namespace, "core")
	outside := watchCrowd(t, deployment.Namespace)
	outside.gauge(t, 3)
	old := someMachine(t, deployment.Namespace)
	runMachines(t, deployment.Namespace, "replace", old.Name, "--yes", "--timeout", "1m")
	wantRemoved(t, old)
	wantRolledOut(t, deployment)
	outside.want(t, 3, 4)
	if replicas := *get(t, deployment).Spec.Replicas; replicas != 3 || len(deployment.Annotations["millwright.dev/replace-machine"]) > 0 {
		t.Errorf("%d replicas and annotations %v are left", replicas, deployment.Annotations)
	}
}

func TestDeletingMachinesRemovesTheseAndNoOthers(t *testing.T) {
	t.Parallel()
	deployment := rollingDeployment(t, 4)
	startOperator(t, deployment.Namespace, "core")
	watchCrowd(t, deployment.Namespace).gauge(t, 4)
	before := machines(t, deployment.Namespace)
	runMachines(t, deployment.Namespace, "delete", before[1].Name, before[2].Name, "--yes", "--wait", "--timeout", "1m")
	wantRolledOut(t, deployment)
	var left []string
	for _, m := range machines(t, deployment.Namespace) {
		left = append(left, m.Name)
	}
	if want := []string{before[0].Name, before[3].Name}; !slices.Equal(left, want) {
		t.Errorf("left are %v, want %v", left, want)
	}

	other := someMachine(t, deployment.Namespace)
	runMachines(t, deployment.Namespace, "delete", other.Name, "--replace", "--yes", "--wait", "--timeout", "1m")
	wantRemoved(t, other)
	wantRolledOut(t, deployment)
	wantCount(t, deployment.Namespace, 2)
}

func TestMachinesAreDeletedAndReplacedWhileARolloutIsUnderWay(t *testing.T) {
	t.Parallel()
	runMachines(t, "default", "version") // builds it
	for name, args := range map[string][]string{
		"delete":  {"delete", "--yes", "--wait", "--timeout", "1m"},
		"replace": {"replace", "--yes", "--timeout", "1m"},
	} {
		for _, which := range []string{"old", "new"} {
			t.Run(name+" one of the "+which+" set", func(t *testing.T) {
				t.Parallel()
				deployment := rollingDeployment(t, 6)
				// Slow enough for the command to find the machine: the old ones stay until new ones are available.
				change(t, deployment, func(d *clusterv1.MachineDeployment) { d.Spec.Template.Spec.MinReadySeconds = ptr.To[int32](4) })
				startOperator(t, deployment.Namespace, "core")
				watchCrowd(t, deployment.Namespace).gauge(t, 6)
				change(t, deployment, setVersion("v1.37.1"))
				var machine *clusterv1.Machine
				version := map[string]string{"old": "v1.37.2", "new": "v1.37.1"}[which]
				eventually(t, func() string {
					for _, m := range machines(t, deployment.Namespace) {
						if m.Spec.Version == version && m.DeletionTimestamp == nil {
							machine = &m
							return ""
						}
					}
					return "no machine of version " + version
				})
				runMachines(t, deployment.Namespace, append([]string{args[0], machine.Name}, args[1:]...)...)
				wantRemoved(t, machine)
				wantRolledOut(t, deployment)
				want := map[string]int32{"delete": 5, "replace": 6}[name]
				if replicas := *get(t, deployment).Spec.Replicas; replicas != want {
					t.Errorf("%d replicas, want %d", replicas, want)
				}
				wantCount(t, deployment.Namespace, int(want))
			})
		}
	}
}
