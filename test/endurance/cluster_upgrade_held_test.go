package endurance

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millwright-dev/millwright/test/sandboxtest"
)

// upgradePhase waits until the upgrade of a cluster is in a phase, with a part of its message, and returns the line that
// "upgrade status" begins with.
func upgradePhase(t *testing.T, cluster, phase, part string) string {
	t.Helper()
	line := ""
	sandboxtest.Eventually(t, 4*time.Minute, func() string {
		line, _, _ = strings.Cut(bed.Run(t, "kubectl", "machines", "upgrade", "status", cluster), "\n")
		if strings.Contains(line, ": "+phase+": ") && strings.Contains(line, part) {
			return ""
		}
		return fmt.Sprintf("want it %s, with %q: %s", phase, part, line)
	})
	return line
}

// changeUpgrade changes the spec of an upgrade to v1.37.2 as a user would who keeps it in a file.
func changeUpgrade(t *testing.T, cluster, spec string) {
	t.Helper()
	bed.Run(t, "kubectl", "patch", "clusterupgrade", cluster+"-"+sandboxtest.Version, "--type=merge", "--patch", `{"spec":`+spec+`}`)
}

// versionsOfMachines counts the Machines of a cluster by owner and version, such as "held-md-0 v1.36.3"; the control plane's begin
// with its version. Each has to be ready.
func versionsOfMachines(t *testing.T, cluster string) map[string]int {
	t.Helper()
	var list struct {
		Items []struct {
			Metadata struct{ Labels map[string]string }
			Spec     struct{ Version string }
			Status   struct {
				Conditions []struct{ Type, Status string }
			}
		}
	}
	if err := json.Unmarshal([]byte(bed.Run(t, "kubectl", "get", "machines.cluster.x-k8s.io", "-l", "cluster.x-k8s.io/cluster-name="+cluster, "-o", "json")), &list); err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, m := range list.Items {
		state := ""
		for _, c := range m.Status.Conditions {
			if c.Type == "Ready" && c.Status != "True" {
				state = " not ready"
			}
		}
		count[strings.TrimSpace(m.Metadata.Labels["cluster.x-k8s.io/deployment-name"]+" "+m.Spec.Version)+state]++
	}
	return count
}

func wantVersions(t *testing.T, cluster string, want map[string]int) {
	t.Helper()
	sandboxtest.Eventually(t, 2*time.Minute, func() string {
		if got := versionsOfMachines(t, cluster); fmt.Sprint(got) != fmt.Sprint(want) {
			return fmt.Sprintf("the machines are %v, want %v", got, want)
		}
		return ""
	})
}

func TestAnUpgradeWaitsForItsWindowStopsAtABadImageAndGoesOnOrBack(t *testing.T) {
	slow(t)
	t.Parallel()
	const cluster, first, second = "held", "held-md-0", "held-md-1"
	// An image of the right name in which nothing boots.
	bed.Image(t, "ubuntu-2404-kube-"+former, "held-worker-"+former, nil)
	bed.Image(t, "ubuntu-2404-kube-"+sandboxtest.Version, "held-worker-"+sandboxtest.Version, map[string]string{"sandbox.kubernetesVersion": "v0.0.0"})
	bed.Create(t, cluster, 0, "KUBERNETES_VERSION="+former, "VSPHERE_TEMPLATE=ubuntu-2404-kube-"+former)
	changeTemplate(t, cluster+"-worker", "held-worker-"+former)
	bed.Run(t, "kubectl", "machines", "scale", first, "--replicas", "2")
	addDeployment(t, cluster, second, 1)
	bed.WaitReady(t, cluster)
	before := bed.Machines(t, cluster)

	// Outside of its window nothing is replaced, and it says when that opens.
	upgrade := bed.Run(t, "kubectl", "machines", "upgrade", cluster, "--to", sandboxtest.Version, "--dry-run=client", "-o", "json")
	opens := time.Now().UTC().AddDate(0, 0, 2)
	window := fmt.Sprintf(`"windows":[{"schedule":"30 3 %d %d *","durationMinutes":60}]`, opens.Day(), opens.Month())
	upgrade = strings.Replace(upgrade, `"spec": {`, `"spec": {"machineTimeoutSeconds":40,`+window+`,`, 1)
	if got := bed.Try(t, nil, upgrade, "kubectl", "create", "-f", "-"); got.Code != 0 {
		t.Fatalf("create the upgrade: %s", got.Stderr)
	}
	upgradePhase(t, cluster, "Paused", "the maintenance window opens at "+opens.Format(time.DateOnly)+"T03:30:00Z")
	if after := bed.Machines(t, cluster); !slices.Equal(before, after) {
		t.Errorf("outside of the window the machines %v became %v", before, after)
	}
	changeUpgrade(t, cluster, `{"windows":null}`)

	// The first batch does not boot: all else is as it was.
	cause := upgradePhase(t, cluster, "Failed", fmt.Sprintf("workers %q to %s", first, sandboxtest.Version))
	t.Log(cause)
	wantVersions(t, cluster, map[string]int{sandboxtest.Version: 1, first + " " + former: 2, first + " " + sandboxtest.Version + " not ready": 1, second + " " + former: 1})

	// Given up, the workers are what they were.
	bed.Run(t, "kubectl", "machines", "upgrade", "abort", cluster, "--yes")
	upgradePhase(t, cluster, "Aborted", "")
	wantVersions(t, cluster, map[string]int{sandboxtest.Version: 1, first + " " + former: 2, second + " " + former: 1})
	bed.WantExactly(t, cluster, bed.Kubeconfig(t, cluster), 4)
	wantOnlyTemplatesInUse(t, cluster)

	// Begun anew it stops there again, and goes on with another image.
	bed.Run(t, "kubectl", "machines", "upgrade", cluster, "--to", sandboxtest.Version)
	changeUpgrade(t, cluster, `{"machineTimeoutSeconds":30}`)
	upgradePhase(t, cluster, "Failed", fmt.Sprintf("workers %q", first))
	bed.Run(t, "kubectl", "machines", "upgrade", cluster, "--to", sandboxtest.Version, "--image-pattern", "ubuntu-2404-kube-{{.Version}}", "--wait", "--timeout", "5m")
	wantVersions(t, cluster, map[string]int{sandboxtest.Version: 1, first + " " + sandboxtest.Version: 2, second + " " + sandboxtest.Version: 1})
	bed.WantExactly(t, cluster, bed.Kubeconfig(t, cluster), 4)
	bed.DeleteCluster(t, cluster)
}

// changeTemplate makes a machine template anew with another image: a template cannot be edited.
func changeTemplate(t *testing.T, name, image string) {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal([]byte(bed.Run(t, "kubectl", "get", "vspheremachinetemplate", name, "-o", "json")), &object); err != nil {
		t.Fatal(err)
	}
	object["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)["template"] = image
	labels := object["metadata"].(map[string]any)["labels"]
	object["metadata"] = map[string]any{"name": name, "labels": labels}
	made, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	bed.Run(t, "kubectl", "delete", "vspheremachinetemplate", name)
	if got := bed.Try(t, nil, string(made), "kubectl", "create", "-f", "-"); got.Code != 0 {
		t.Fatalf("create machine template %s: %s", name, got.Stderr)
	}
}
