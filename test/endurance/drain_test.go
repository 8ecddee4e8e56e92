package endurance

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/millwright-dev/millwright/test/sandboxtest"
)

// guarded is a Deployment of one pod, and a budget that never allows its eviction.
const guarded = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: guarded}
spec:
  selector: {matchLabels: {app: guarded}}
  template:
    metadata: {labels: {app: guarded}}
    spec:
      tolerations: [{key: node.cloudprovider.kubernetes.io/uninitialized, operator: Exists}]
      containers: [{name: main, image: example.org/guarded}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: guarded-budget}
spec:
  maxUnavailable: 0
  selector: {matchLabels: {app: guarded}}
`

func TestAPodThatMayNotBeDisruptedIsNamedUntilTheDrainTimesOut(t *testing.T) {
	slow(t)
	t.Parallel()
	const cluster, deployment = "guarded", "guarded-md-0"
	bed.Create(t, cluster, 2)
	kubeconfig := bed.Kubeconfig(t, cluster)
	if got := bed.Try(t, nil, guarded, "kubectl", "--kubeconfig", kubeconfig, "apply", "-f", "-"); got.Code != 0 {
		t.Fatalf("apply the guarded pod: %s", got.Stderr)
	}
	bed.Run(t, "kubectl", "--kubeconfig", kubeconfig, "rollout", "status", "deployment/guarded", "--timeout", "2m")
	where := strings.Fields(bed.Run(t, "kubectl", "--kubeconfig", kubeconfig, "get", "pods", "-l", "app=guarded", "-o",
		"jsonpath={.items[0].metadata.name} {.items[0].spec.nodeName}"))
	pod, machine := where[0], where[1]

	bed.Run(t, "kubectl", "machines", "delete", machine, "--yes")
	wantNamed := func(what string, read func() string) {
		sandboxtest.Eventually(t, time.Minute, func() string {
			if text := read(); !strings.Contains(text, pod) || !strings.Contains(text, "guarded-budget") {
				return fmt.Sprintf("%s does not name the pod %s and its budget: %s", what, pod, text)
			}
			return ""
		})
	}
	wantNamed("the condition Deleting", func() string {
		return field(t, "machine.cluster.x-k8s.io/"+machine, `.status.conditions[?(@.type=="Deleting")].message`)
	})
	wantNamed("kubectl machines get", func() string { return bed.Run(t, "kubectl", "machines", "get", cluster) })
	if got := bed.Run(t, "kubectl", "--kubeconfig", kubeconfig, "get", "pod", pod, "-o", "jsonpath={.metadata.deletionTimestamp}"); got != "" {
		t.Errorf("the pod was evicted at %s against its budget", got)
	}

	// The timeout reaches Machines that are being deleted too, and counts from the start of the drain.
	bed.Run(t, "kubectl", "patch", "machinedeployment/"+deployment, "--type=merge", "--patch",
		`{"spec":{"template":{"spec":{"deletion":{"nodeDrainTimeoutSeconds":1}}}}}`)
	bed.WantExactly(t, cluster, kubeconfig, 2)
	bed.Run(t, "kubectl", "--kubeconfig", kubeconfig, "rollout", "status", "deployment/guarded", "--timeout", "2m")
	bed.DeleteCluster(t, cluster)
}
