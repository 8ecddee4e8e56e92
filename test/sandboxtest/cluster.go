package sandboxtest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// Create applies the sandbox's template of a cluster with a control plane of one machine, at an endpoint of its own,
// and waits until all of it is ready.
func (s *Sandbox) Create(t *testing.T, cluster string, workers int, env ...string) {
	t.Helper()
	s.Apply(t, "sandbox/templates/cluster.yaml", append([]string{"CLUSTER_NAME=" + cluster, "KUBERNETES_VERSION=" + Version,
		fmt.Sprintf("WORKER_MACHINE_COUNT=%d", workers), "CONTROL_PLANE_ENDPOINT_IP=" + s.Endpoint(t)}, env...)...)
	s.WaitReady(t, cluster)
}

// WaitReady waits until a cluster and everything in it is ready.
func (s *Sandbox) WaitReady(t *testing.T, cluster string) {
	t.Helper()
	s.Run(t, "kubectl", "machines", "tree", cluster, "--watch", "--until", "ready", "--timeout", "8m")
}

// Names lists the names of the objects that a kubectl get finds.
func (s *Sandbox) Names(t *testing.T, args ...string) []string {
	t.Helper()
	out := s.Run(t, "kubectl", append([]string{"get", "-o", "jsonpath={range .items[*]}{.metadata.name}{\"\\n\"}{end}"}, args...)...)
	return strings.Fields(out)
}

// Machines lists the names of a cluster's Machines.
func (s *Sandbox) Machines(t *testing.T, cluster string) []string {
	t.Helper()
	return s.Names(t, "machines.cluster.x-k8s.io", "-l", "cluster.x-k8s.io/cluster-name="+cluster)
}

// Kubeconfig writes the kubeconfig of a workload cluster to a file and returns its path.
func (s *Sandbox) Kubeconfig(t *testing.T, cluster string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), cluster+".kubeconfig")
	if err := os.WriteFile(path, []byte(s.Run(t, "kubectl", "machines", "kubeconfig", cluster)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// WantExactly waits until Machines, VMs and Nodes of the cluster are the same names, count of them.
func (s *Sandbox) WantExactly(t *testing.T, cluster, kubeconfig string, count int) {
	t.Helper()
	Eventually(t, 3*time.Minute, func() string {
		want := s.Machines(t, cluster)
		vms := s.VirtualMachines(t, cluster+"-")
		nodes := s.Names(t, "nodes", "--kubeconfig", kubeconfig)
		for _, list := range [][]string{want, vms, nodes} {
			slices.Sort(list)
		}
		if len(want) == count && slices.Equal(want, vms) && slices.Equal(want, nodes) {
			return ""
		}
		return fmt.Sprintf("want %d of each, the same\nMachines %d: %v\nVMs %d: %v\nNodes %d: %v\nwhat is known of those that are not Machines:\n%s",
			count, len(want), want, len(vms), vms, len(nodes), nodes, s.traces(t, vms, want))
	})
}

// traces tells what there is of VMs that no Machine stands for: the VSphereMachine, and what the operators logged.
func (s *Sandbox) traces(t *testing.T, vms, machines []string) string {
	t.Helper()
	var out strings.Builder
	for _, vm := range vms {
		if slices.Contains(machines, vm) {
			continue
		}
		fmt.Fprintln(&out, vm, s.Try(t, nil, "", "kubectl", "get", "vspheremachine", vm, "-o", "yaml", "--ignore-not-found").Stdout)
		log, err := os.ReadFile(filepath.Join(s.Dir, "logs", "operator.log"))
		if err != nil {
			fmt.Fprintln(&out, err)
		}
		for line := range strings.Lines(string(log)) {
			if strings.Contains(line, vm) {
				out.WriteString(line)
			}
		}
	}
	return out.String()
}

// DeleteCluster deletes a cluster and checks that nothing of it is left.
func (s *Sandbox) DeleteCluster(t *testing.T, cluster string) {
	t.Helper()
	s.Run(t, "kubectl", "delete", "cluster", cluster, "--timeout", "5m")
	Eventually(t, time.Minute, func() string {
		if vms := s.VirtualMachines(t, cluster+"-"); len(vms) > 0 {
			return fmt.Sprintf("VMs are left: %v", vms)
		}
		if left := s.ownedBy(t, cluster); len(left) > 0 {
			return fmt.Sprintf("objects are left: %v", left)
		}
		return ""
	})
}

// ownedBy lists what is left of a cluster: whatever bears its name as label or
// in its own name. The ClusterResourceSet and what it names are the user's.
func (s *Sandbox) ownedBy(t *testing.T, cluster string) []string {
	t.Helper()
	var kinds []string
	for _, resource := range strings.Fields(s.Run(t, "kubectl", "api-resources", "--verbs", "list", "--namespaced", "-o", "name")) {
		if strings.HasSuffix(resource, "cluster.x-k8s.io") && !strings.HasPrefix(resource, "clusterresourceset") {
			kinds = append(kinds, resource)
		}
	}
	kinds = append(kinds, "secrets", "configmaps")
	var list struct {
		Items []struct {
			Kind     string
			Metadata struct {
				Name   string
				Labels map[string]string
			}
		}
	}
	if err := json.Unmarshal([]byte(s.Run(t, "kubectl", "get", strings.Join(kinds, ","), "-o", "json")), &list); err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, item := range list.Items {
		name := item.Metadata.Name
		if item.Metadata.Labels["cluster.x-k8s.io/cluster-name"] == cluster || name == cluster || strings.HasPrefix(name, cluster+"-") {
			left = append(left, item.Kind+"/"+name)
		}
	}
	return left
}
