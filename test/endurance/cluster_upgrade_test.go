package endurance

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millwright-dev/millwright/test/sandboxtest"
)

const former = "v1.36.3"

// addDeployment gives a cluster another MachineDeployment, like its first.
func addDeployment(t *testing.T, cluster, name string, replicas int) {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal([]byte(bed.Run(t, "kubectl", "get", "machinedeployment", cluster+"-md-0", "-o", "json")), &object); err != nil {
		t.Fatal(err)
	}
	spec := object["spec"].(map[string]any)
	spec["replicas"] = replicas
	delete(spec, "selector")
	delete(spec["template"].(map[string]any), "metadata")
	made, err := json.Marshal(map[string]any{"apiVersion": object["apiVersion"], "kind": object["kind"],
		"metadata": map[string]any{"name": name, "labels": map[string]any{"cluster.x-k8s.io/cluster-name": cluster}}, "spec": spec})
	if err != nil {
		t.Fatal(err)
	}
	if got := bed.Try(t, nil, string(made), "kubectl", "create", "-f", "-"); got.Code != 0 {
		t.Fatalf("create MachineDeployment %s: %s", name, got.Stderr)
	}
}

func TestAWholeClusterIsUpgradedInOrderThoughTheOperatorIsKilledAgainAndAgain(t *testing.T) {
	slow(t)
	const cluster, first, second = "whole", "whole-md-0", "whole-md-1"
	bed.Create(t, cluster, 3, "KUBERNETES_VERSION="+former, "VSPHERE_TEMPLATE=ubuntu-2404-kube-"+former, "CONTROL_PLANE_MACHINE_COUNT=3")
	addDeployment(t, cluster, second, 2)
	bed.WaitReady(t, cluster)
	bed.WantMembers(t, cluster, 3)
	kubeconfig := bed.Kubeconfig(t, cluster)
	installAddons(t, cluster)
	chronicle := bed.Chronicle(t, cluster)
	chronicle.Addons(t, kubeconfig, sandboxtest.Version)
	_, settle := writing(t, kubeconfig)

	bed.Run(t, "kubectl", "machines", "upgrade", cluster, "--to", sandboxtest.Version)
	random := chance(t)
	last, kills := 0, 0
	for ; kills < 30 && !strings.Contains(bed.Run(t, "kubectl", "machines", "upgrade", "status", cluster), ": Completed: "); kills++ {
		last = killOperatorSoon(t, random, last)
		// Whoever watches it is cut off too, and comes back by the same command.
		if got := bed.Try(t, nil, "", "kubectl", "machines", "upgrade", cluster, "--to", sandboxtest.Version, "--wait", "--timeout", "100ms"); got.Code != 124 && got.Code != 0 {
			t.Errorf("the same command again: exit code %d: %s", got.Code, got.Stderr)
		}
	}
	bed.Run(t, "kubectl", "machines", "upgrade", "status", cluster, "--watch", "--timeout", "8m")
	t.Logf("killed %d times", kills)
	if kills < 10 {
		t.Errorf("the operator was killed only %d times before the end", kills)
	}

	t.Logf("events:\n%s", chronicle)
	made := chronicle.All()
	var owners []string
	for _, m := range made {
		owners = append(owners, m.Owner)
		if m.Owner != "" && m.Left[""] > 0 {
			t.Errorf("%v was made while %d control-plane machines were not upgraded", m, m.Left[""])
		}
		if m.Owner == second && m.Left[first] > 0 {
			t.Errorf("%v was made while %d machines of %s were not upgraded", m, m.Left[first], first)
		}
	}
	// Each once, and in the order of the plan: nothing is done twice, however often the operator dies.
	if want := []string{"", "", "", "addon kube-proxy", "addon coredns", first, first, first, second, second}; !slices.Equal(want, owners) {
		t.Errorf("what was made and moved was %v", made)
	}
	for owner, most := range map[string]int{"": 4, first: 4, second: 3} {
		if got := chronicle.Most(owner); got > most {
			t.Errorf("there were %d machines of %q at once, want %d at most", got, owner, most)
		}
	}
	bed.WantMembers(t, cluster, 3)
	bed.WantExactly(t, cluster, kubeconfig, 8)
	settle()
	wantOnlyTemplatesInUse(t, cluster)
	bed.DeleteCluster(t, cluster)
}

// installAddons gives a cluster of the former version add-ons that follow its version. Calico does for both and stays.
func installAddons(t *testing.T, cluster string) {
	t.Helper()
	if os.Getenv("MILLWRIGHT_MIRROR") != "" {
		bed.Release(t, cluster, "calico", "3.32.1")
	}
	bed.Release(t, cluster, "kube-proxy", "1.36.0")
	bed.Release(t, cluster, "coredns", "1.14.2")
}

// wantOnlyTemplatesInUse checks that of the machine templates that upgrades made each is referred to.
func wantOnlyTemplatesInUse(t *testing.T, cluster string) {
	t.Helper()
	used := bed.Run(t, "kubectl", "get", "kubeadmcontrolplanes,machinedeployments,machinesets", "-l", "cluster.x-k8s.io/cluster-name="+cluster, "-o", "json")
	sandboxtest.Eventually(t, time.Minute, func() string {
		for _, name := range bed.Names(t, "vspheremachinetemplates", "-l", "lifecycle.millwright.dev/made-by-upgrade,cluster.x-k8s.io/cluster-name="+cluster) {
			if !strings.Contains(used, `"`+name+`"`) {
				return "nothing uses the machine template " + name
			}
		}
		return ""
	})
}
