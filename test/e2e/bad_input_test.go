package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millwright-dev/millwright/test/sandboxtest"
)

// conditions returns the messages of an object's conditions that are not met,
// each as "Type: message".
func conditions(t *testing.T, kind, name string) []string {
	t.Helper()
	var object struct {
		Status struct {
			Conditions []struct{ Type, Status, Message string }
		}
	}
	got := bed.Try(t, nil, "", "kubectl", "get", kind, name, "-o", "json")
	if got.Code != 0 {
		return nil
	}
	if err := json.Unmarshal([]byte(got.Stdout), &object); err != nil {
		t.Fatal(err)
	}
	var messages []string
	for _, condition := range object.Status.Conditions {
		if condition.Status != "True" && condition.Message != "" {
			messages = append(messages, condition.Type+": "+condition.Message)
		}
	}
	return messages
}

// wantCondition waits until a condition of the object that is not met has all
// the words in its message.
func wantCondition(t *testing.T, kind, name string, words ...string) {
	t.Helper()
	sandboxtest.Eventually(t, time.Minute, func() string {
		messages := conditions(t, kind, name)
		for _, message := range messages {
			if !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(message, word) }) {
				return ""
			}
		}
		return fmt.Sprintf("no condition of %s/%s has all of %q:\n%s", kind, name, words, strings.Join(messages, "\n"))
	})
}

func TestWhatIsWrongInAClusterIsToldAndMendingItHeals(t *testing.T) {
	const cluster = "mended"
	bed.Apply(t, "sandbox/templates/cluster.yaml", "CLUSTER_NAME="+cluster, "KUBERNETES_VERSION="+sandboxtest.Version,
		"WORKER_MACHINE_COUNT=0", "CONTROL_PLANE_ENDPOINT_IP="+bed.Endpoint(t), "VSPHERE_PASSWORD=wrong")
	wantCondition(t, "vspherecluster", cluster, bed.VSphere["VSPHERE_SERVER"], "password")
	bed.Run(t, "kubectl", "patch", "secret", cluster, "--type", "merge", "-p",
		fmt.Sprintf(`{"stringData":{"password":%q}}`, bed.VSphere["VSPHERE_PASSWORD"]))
	bed.Run(t, "kubectl", "machines", "tree", cluster, "--watch", "--until", "ready", "--timeout", "5m")
	kubeconfig := bed.Kubeconfig(t, cluster)

	// Each case is a deployment of one machine whose template is wrong in one field.
	cases := map[string]struct {
		field, wrong string
		words        []string
		mend         string
	}{
		"template":  {"template", `"no-such-template"`, []string{"no-such-template", bed.VSphere["VSPHERE_TEMPLATE"]}, bed.VSphere["VSPHERE_TEMPLATE"]},
		"datastore": {"datastore", `"no-such-datastore"`, []string{"no-such-datastore", filepath.Base(bed.VSphere["VSPHERE_DATASTORE"])}, bed.VSphere["VSPHERE_DATASTORE"]},
		"folder":    {"folder", `"no-such-folder"`, []string{"no-such-folder"}, bed.VSphere["VSPHERE_FOLDER"]},
		"pool":      {"resourcePool", `"no-such-pool"`, []string{"no-such-pool"}, bed.VSphere["VSPHERE_RESOURCE_POOL"]},
		"version":   {"template", `"ubuntu-2404-kube-v1.36.3"`, []string{"v1.36.3", sandboxtest.Version}, bed.VSphere["VSPHERE_TEMPLATE"]},
	}
	for name, tc := range cases {
		copyWorkers(t, cluster, name, tc.field, tc.wrong)
	}
	copyWorkers(t, cluster, "network", "network", `{"devices":[{"networkName":"no-such-network","dhcp4":true}]}`)

	machineOf := func(name string) string {
		var found []string
		sandboxtest.Eventually(t, time.Minute, func() string {
			found = bed.Names(t, "vspheremachines", "-l", "cluster.x-k8s.io/deployment-name="+cluster+"-"+name)
			if len(found) == 1 {
				return ""
			}
			return fmt.Sprintf("VSphereMachines of %s: %v, want one", name, found)
		})
		return found[0]
	}
	mend := func(name, patch string) {
		bed.Run(t, "kubectl", "patch", "vspheremachine", machineOf(name), "--type", "merge", "-p", patch)
	}
	for name, tc := range cases {
		wantCondition(t, "vspheremachine", machineOf(name), tc.words...)
		wantCondition(t, "machine", machineOf(name), tc.words[0])
	}
	wantCondition(t, "vspheremachine", machineOf("network"), "no-such-network", filepath.Base(bed.VSphere["VSPHERE_NETWORK"]))
	if vms := bed.VirtualMachines(t, cluster+"-"); len(vms) != 1 {
		t.Errorf("VMs %v, want only the control plane's: nothing half made", vms)
	}

	for name, tc := range cases {
		mend(name, fmt.Sprintf(`{"spec":{%q:%q}}`, tc.field, tc.mend))
	}
	mend("network", fmt.Sprintf(`{"spec":{"network":{"devices":[{"networkName":%q,"dhcp4":true}]}}}`, bed.VSphere["VSPHERE_NETWORK"]))
	bed.Run(t, "kubectl", "machines", "tree", cluster, "--watch", "--until", "ready", "--timeout", "5m")
	bed.WantExactly(t, cluster, kubeconfig, 2+len(cases))
	bed.DeleteCluster(t, cluster)
}

// copyWorkers makes a deployment <cluster>-<name> of one worker whose machine
// template differs from that of <cluster>-md-0 in one field.
func copyWorkers(t *testing.T, cluster, name, field, value string) {
	t.Helper()
	var object map[string]any
	decode := func(kind, from string) map[string]any {
		object = nil
		if err := json.Unmarshal([]byte(bed.Run(t, "kubectl", "get", kind, from, "-o", "json")), &object); err != nil {
			t.Fatal(err)
		}
		object["metadata"] = map[string]any{"name": cluster + "-" + name, "labels": map[string]any{"cluster.x-k8s.io/cluster-name": cluster}}
		delete(object, "status")
		return object["spec"].(map[string]any)
	}
	create := func() {
		data, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		if got := bed.Try(t, nil, string(data), "kubectl", "create", "-f", "-"); got.Code != 0 {
			t.Fatalf("create a copy of the workers: %s", got.Stderr)
		}
	}

	deployment := bed.Run(t, "kubectl", "get", "machinedeployment", cluster+"-md-0", "-o", "jsonpath={.spec.template.spec.infrastructureRef.name}")
	machine := decode("vspheremachinetemplate", strings.TrimSpace(deployment))["template"].(map[string]any)["spec"].(map[string]any)
	var wrong any
	if err := json.Unmarshal([]byte(value), &wrong); err != nil {
		t.Fatal(err)
	}
	machine[field] = wrong
	create()

	spec := decode("machinedeployment", cluster+"-md-0")
	spec["replicas"] = 1
	delete(spec, "selector")
	template := spec["template"].(map[string]any)
	delete(template, "metadata")
	template["spec"].(map[string]any)["infrastructureRef"].(map[string]any)["name"] = cluster + "-" + name
	create()
}

func TestBadInputOnTheCommandLineIsRefusedWithTheNextStep(t *testing.T) {
	const cluster = "refused"
	bed.Apply(t, "sandbox/templates/cluster.yaml", "CLUSTER_NAME="+cluster, "KUBERNETES_VERSION="+sandboxtest.Version,
		"WORKER_MACHINE_COUNT=0", "CONTROL_PLANE_ENDPOINT_IP="+bed.Endpoint(t))
	dead := filepath.Join(t.TempDir(), "kubeconfig")
	config := `{"apiVersion":"v1","kind":"Config","current-context":"dead","contexts":[{"name":"dead","context":{"cluster":"dead","user":"dead"}}],` +
		`"clusters":[{"name":"dead","cluster":{"server":"https://127.0.0.1:1"}}],"users":[{"name":"dead","user":{}}]}`
	if err := os.WriteFile(dead, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		args  []string
		code  int
		words []string
	}{
		"replicas below zero":        {[]string{"machines", "scale", cluster + "-md-0", "--replicas=-1"}, 2, []string{"-1"}},
		"absurd replicas":            {[]string{"machines", "scale", cluster + "-md-0", "--replicas=1000000"}, 1, []string{"1000000"}},
		"an even control plane":      {[]string{"machines", "scale", "kubeadmcontrolplane/" + cluster, "--replicas=2"}, 1, []string{"odd"}},
		"a deployment unknown":       {[]string{"machines", "scale", "nobody", "--replicas=1"}, 1, []string{"nobody", "not found"}},
		"an unknown add-on":          {[]string{"addons", "render", "calcio"}, 1, []string{"calcio", "calico"}},
		"an unknown version":         {[]string{"addons", "render", "coredns", "--version", "0.0.1", "--kubernetes-version", sandboxtest.Version}, 1, []string{"0.0.1"}},
		"an unknown parameter":       {[]string{"addons", "render", "coredns", "--set", "replica=3", "--kubernetes-version", sandboxtest.Version}, 1, []string{"replica", "replicas"}},
		"a server that is not there": {[]string{"machines", "get", "--kubeconfig", dead}, 1, []string{"127.0.0.1:1"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := bed.Try(t, nil, "", "kubectl", tc.args...)
			if got.Code != tc.code {
				t.Errorf("kubectl %s: exit code %d, want %d\n%s", strings.Join(tc.args, " "), got.Code, tc.code, got.Stderr)
			}
			for _, word := range tc.words {
				if !strings.Contains(got.Stderr, word) {
					t.Errorf("the error does not say %q: %s", word, got.Stderr)
				}
			}
			if got.Stdout != "" {
				t.Errorf("an error on standard output: %s", got.Stdout)
			}
		})
	}
	bed.DeleteCluster(t, cluster)
}
