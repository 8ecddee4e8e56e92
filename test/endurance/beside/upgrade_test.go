package beside

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millwright-dev/millwright/test/sandboxtest"
)

const former = "v1.36.3"

var bed sandboxtest.Sandbox

func TestMain(m *testing.M) {
	if os.Getenv("ENDURANCE") == "" {
		os.Exit(m.Run()) // each test skips itself
	}
	machines, err := filepath.Abs(filepath.Join("testdata", "machines"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(sandboxtest.Main(m, &bed, "--manifests", machines))
}

// startBeside starts the second operator with the rights that manifests/beside-upstream gives it.
func startBeside(t *testing.T) {
	t.Helper()
	role, err := os.ReadFile(filepath.Join(bed.Root, "manifests", "beside-upstream", "role.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	// The full role has the same name and is here too.
	if got := bed.Try(t, nil, strings.ReplaceAll(string(role), "name: millwright-operator", "name: beside"), "kubectl", "apply", "-f", "-"); got.Code != 0 {
		t.Fatalf("apply the role: %s", got.Stderr)
	}
	const namespace = "millwright-system"
	bed.Run(t, "kubectl", "create", "serviceaccount", "beside", "-n", namespace)
	bed.Run(t, "kubectl", "create", "clusterrolebinding", "beside", "--clusterrole", "beside", "--serviceaccount", namespace+":beside")
	bed.StartOperator(t, "beside", strings.TrimSpace(bed.Run(t, "kubectl", "create", "token", "beside", "-n", namespace, "--duration", "1h")),
		"--controllers=addons,upgrade", "--leader-elect=false")
}

func TestAddonsAndUpgradesLeaveTheMachinesToTheOtherOperator(t *testing.T) {
	if os.Getenv("ENDURANCE") == "" {
		t.Skip("takes minutes: `make endurance` runs it")
	}
	const cluster, workers = "beside", "beside-md-0"
	bed.Create(t, cluster, 1, "KUBERNETES_VERSION="+former, "VSPHERE_TEMPLATE=ubuntu-2404-kube-"+former)
	startBeside(t)
	bed.Release(t, cluster, "kube-proxy", "1.36.0")
	bed.Release(t, cluster, "coredns", "1.14.2")
	chronicle := bed.Chronicle(t, cluster)
	chronicle.Addons(t, bed.Kubeconfig(t, cluster), sandboxtest.Version)

	plan := bed.Run(t, "kubectl", "machines", "upgrade", cluster, "--to", sandboxtest.Version, "--plan")
	for _, step := range []string{"1 addon kube-proxy 1.36.0 1.37.0", "1 addon coredns 1.14.2 1.14.6"} {
		if !strings.Contains(strings.Join(strings.Fields(plan), " "), step) {
			t.Errorf("the plan does not tell %q:\n%s", step, plan)
		}
	}
	bed.Run(t, "kubectl", "machines", "upgrade", cluster, "--to", sandboxtest.Version, "--wait", "--timeout", "6m")
	bed.WaitReady(t, cluster)

	t.Logf("events:\n%s", chronicle)
	var order []string
	for _, made := range chronicle.All() {
		order = append(order, made.Owner)
		if strings.HasPrefix(made.Owner, "addon") && made.Left[""] > 0 {
			t.Errorf("%v came while %d control-plane machines were older", made, made.Left[""])
		}
	}
	// Each once: what the other operator makes, and what this one moves, in the places of the plan.
	if want := []string{"", "addon kube-proxy", "addon coredns", workers}; !slices.Equal(want, order) {
		t.Errorf("the order is %q, want %q", order, want)
	}
	for _, annotation := range []string{"held-version", "halted-by", "before-upgrade"} {
		if text := bed.Run(t, "kubectl", "get", "addonreleases,machinedeployments,kubeadmcontrolplanes", "-o", "yaml"); strings.Contains(text, annotation) {
			t.Errorf("an annotation %s is left", annotation)
		}
	}
	bed.Run(t, "kubectl", "delete", "cluster", cluster, "--timeout", "3m")
	sandboxtest.Eventually(t, time.Minute, func() string {
		if left := bed.VirtualMachines(t, cluster+"-"); len(left) > 0 {
			return fmt.Sprintf("VMs are left: %v", left)
		}
		return ""
	})
}
