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

// bound sets how far a rollout of a deployment may go above and below its replicas.
func bound(t *testing.T, deployment string, maxSurge, maxUnavailable int) {
	t.Helper()
	bed.Run(t, "kubectl", "patch", "machinedeployment/"+deployment, "--type=merge", "--patch", fmt.Sprintf(
		`{"spec":{"rollout":{"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":%d,"maxUnavailable":%d}}}}}`, maxSurge, maxUnavailable))
	done(t, deployment)
}

// done waits until the rollout of a deployment is over.
func done(t *testing.T, deployment string) {
	t.Helper()
	bed.Run(t, "kubectl", "machines", "rollout", "status", deployment, "--timeout", "8m")
}

// underWay tells whether a deployment is being rolled out.
func underWay(t *testing.T, deployment string) bool {
	t.Helper()
	return bed.Try(t, nil, "", "kubectl", "machines", "rollout", "status", deployment, "--timeout", "1ms").Code != 0
}

// field reads one field of an object.
func field(t *testing.T, object, path string) string {
	t.Helper()
	return strings.TrimSpace(bed.Run(t, "kubectl", "get", object, "-o", "jsonpath={"+path+"}"))
}

const templateOf = ".spec.template.spec.infrastructureRef.name"

// rollOut copies the machine template of a deployment with more memory, and has the deployment use the copy.
func rollOut(t *testing.T, deployment, template string) {
	t.Helper()
	var object map[string]any
	source := field(t, "machinedeployment/"+deployment, templateOf)
	if err := json.Unmarshal([]byte(bed.Run(t, "kubectl", "get", "vspheremachinetemplate", source, "-o", "json")), &object); err != nil {
		t.Fatal(err)
	}
	object["metadata"] = map[string]any{"name": template, "labels": map[string]any{"cluster.x-k8s.io/cluster-name": strings.TrimSuffix(deployment, "-md-0")}}
	machine := object["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
	machine["memoryMiB"] = machine["memoryMiB"].(float64) + 1024
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	if got := bed.Try(t, nil, string(data), "kubectl", "create", "-f", "-"); got.Code != 0 {
		t.Fatalf("create template %s: %s", template, got.Stderr)
	}
	bed.Run(t, "kubectl", "patch", "machinedeployment/"+deployment, "--type=merge", "--patch",
		fmt.Sprintf(`{"spec":{"template":{"spec":{"infrastructureRef":{"name":%q}}}}}`, template))
}

// madeFrom lists the template of each virtual machine of a deployment.
func madeFrom(t *testing.T, deployment string) []string {
	t.Helper()
	return strings.Fields(bed.Run(t, "kubectl", "get", "vspheremachines", "-l", "cluster.x-k8s.io/deployment-name="+deployment,
		"-o", `jsonpath={range .items[*]}{.metadata.annotations.cluster\.x-k8s\.io/cloned-from-name}{"\n"}{end}`))
}

// wantAllFrom checks that count machines of a deployment, and no others, come from a template.
func wantAllFrom(t *testing.T, deployment, template string, count int) {
	t.Helper()
	sandboxtest.Eventually(t, time.Minute, func() string {
		got := madeFrom(t, deployment)
		if len(got) == count && !slices.ContainsFunc(got, func(name string) bool { return name != template }) {
			return ""
		}
		return fmt.Sprintf("the machines of %s come from %v, want %d from %s", deployment, got, count, template)
	})
}

func workersOf(t *testing.T, deployment string) []string {
	t.Helper()
	return bed.Names(t, "machines.cluster.x-k8s.io", "-l", "cluster.x-k8s.io/deployment-name="+deployment)
}

func TestARollingUpdateStaysWithinItsBoundsAndIsUndone(t *testing.T) {
	slow(t)
	t.Parallel()
	const cluster, count, deployment = "rolling", 10, "rolling-md-0"
	bed.Create(t, cluster, count)
	bound(t, deployment, 3, 0)
	sets := bed.Names(t, "machinesets", "-l", "cluster.x-k8s.io/deployment-name="+deployment)
	if len(sets) != 1 {
		t.Fatalf("MachineSets %v, want one before the first rollout", sets)
	}
	template := field(t, "machinedeployment/"+deployment, templateOf)
	outside := bed.WatchMachines(t, deployment, count)

	rollOut(t, deployment, "rolling-larger")
	done(t, deployment)
	outside.WantWithin(t, count, count+3)
	wantAllFrom(t, deployment, "rolling-larger", count)
	bed.WantExactly(t, cluster, bed.Kubeconfig(t, cluster), count+1)
	if replicas := field(t, "machineset/"+sets[0], ".spec.replicas") + " " + field(t, "machineset/"+sets[0], ".status.replicas"); replicas != "0 0" {
		t.Errorf("the old MachineSet asks for and has %s machines, want it kept at 0", replicas)
	}

	bed.Run(t, "kubectl", "machines", "rollout", "undo", deployment, "--wait", "--timeout", "8m")
	outside.WantWithin(t, count, count+3)
	wantAllFrom(t, deployment, template, count)
	if got := field(t, "machinedeployment/"+deployment, templateOf); got != template {
		t.Errorf("after the undo the deployment uses template %s, want %s", got, template)
	}
	bed.DeleteCluster(t, cluster)
}

func TestCommandsDuringARolloutLeaveTheClusterAsAsked(t *testing.T) {
	slow(t)
	t.Parallel()
	const cluster, deployment = "steered", "steered-md-0"
	bed.Create(t, cluster, 4)
	// Each step of a rollout takes a while, so that there is a machine to act on in the middle of it.
	bed.Run(t, "kubectl", "patch", "machinedeployment/"+deployment, "--type=merge", "--patch", `{"spec":{"template":{"spec":{"minReadySeconds":5}}}}`)
	bound(t, deployment, 1, 0)
	kubeconfig := bed.Kubeconfig(t, cluster)

	// Each case starts a rollout and acts on a machine, or on the rollout, while that is under way.
	template := field(t, "machinedeployment/"+deployment, templateOf)
	for _, tc := range []struct {
		name     string
		act      func(machine string) []string
		replicas int
		undone   bool
	}{
		{"replaced", func(machine string) []string { return []string{"replace", machine, "--yes"} }, 4, false},
		{"deleted", func(machine string) []string { return []string{"delete", machine, "--yes", "--wait"} }, 3, false},
		{"exchanged", func(machine string) []string { return []string{"delete", machine, "--replace", "--yes", "--wait"} }, 3, false},
		{"undone", func(string) []string { return []string{"rollout", "undo", deployment, "--wait", "--timeout", "8m"} }, 3, true},
	} {
		victim := workersOf(t, deployment)[0]
		uid := field(t, "machine.cluster.x-k8s.io/"+victim, ".metadata.uid")
		rollOut(t, deployment, cluster+"-"+tc.name)
		if !underWay(t, deployment) {
			t.Fatalf("%s: no rollout is under way", tc.name)
		}
		bed.Run(t, "kubectl", append([]string{"machines"}, tc.act(victim)...)...)
		done(t, deployment)
		if !tc.undone {
			template = cluster + "-" + tc.name
			left := bed.Run(t, "kubectl", "get", "machines.cluster.x-k8s.io", "-o", "jsonpath={.items[*].metadata.uid}")
			if strings.Contains(left, uid) {
				t.Errorf("%s: Machine %s is still there", tc.name, victim)
			}
		}
		if got := field(t, "machinedeployment/"+deployment, ".spec.replicas"); got != fmt.Sprint(tc.replicas) {
			t.Errorf("%s: the deployment asks for %s machines, want %d", tc.name, got, tc.replicas)
		}
		wantAllFrom(t, deployment, template, tc.replicas)
		bed.WantExactly(t, cluster, kubeconfig, tc.replicas+1)
	}
	bed.DeleteCluster(t, cluster)
}
