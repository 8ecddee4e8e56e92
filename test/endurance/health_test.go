package endurance

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/millwright-dev/millwright/test/sandboxtest"
)

// check replaces machines whose node has been silent for half a minute: long enough that two which fall silent together
// are seen together.
const check = `
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachineHealthCheck
metadata: {name: mortal}
spec:
  clusterName: mortal
  selector: {matchLabels: {cluster.x-k8s.io/deployment-name: mortal-md-0}}
  checks:
    unhealthyNodeConditions:
    - {type: Ready, status: Unknown, timeoutSeconds: 30}
  remediation:
    triggerIf: {unhealthyLessThanOrEqualTo: 1}
`

func TestADeadNodeIsReplacedUnlessTooManyAreDead(t *testing.T) {
	slow(t)
	t.Parallel()
	const cluster, deployment, count = "mortal", "mortal-md-0", 4
	bed.Create(t, cluster, count)
	kubeconfig := bed.Kubeconfig(t, cluster)
	if got := bed.Try(t, nil, check, "kubectl", "apply", "-f", "-"); got.Code != 0 {
		t.Fatalf("apply the check: %s", got.Stderr)
	}
	uidOf := func(machine string) string { return field(t, "machine.cluster.x-k8s.io/"+machine, ".metadata.uid") }
	uids := func() []string {
		var out []string
		for _, machine := range workersOf(t, deployment) {
			if got := bed.Try(t, nil, "", "kubectl", "get", "machine.cluster.x-k8s.io", machine, "-o", "jsonpath={.metadata.uid}"); got.Code == 0 {
				out = append(out, got.Stdout)
			}
		}
		return out
	}
	replaced := func(dead ...string) {
		t.Helper()
		sandboxtest.Eventually(t, 5*time.Minute, func() string {
			if slices.ContainsFunc(uids(), func(uid string) bool { return slices.Contains(dead, uid) }) {
				return "a machine whose guest is dead is still there:\n" + bed.Run(t, "kubectl", "machines", "get", cluster)
			}
			return ""
		})
		done(t, deployment)
		bed.WantExactly(t, cluster, kubeconfig, count+1)
	}

	first := workersOf(t, deployment)[0]
	uid := uidOf(first)
	bed.KillGuest(t, first)
	replaced(uid)

	victims := workersOf(t, deployment)[:2]
	dead := []string{uidOf(victims[0]), uidOf(victims[1])}
	for _, machine := range victims {
		bed.KillGuest(t, machine)
	}
	sandboxtest.Eventually(t, 5*time.Minute, func() string {
		// Both are judged to be dead, and are left alone.
		for _, machine := range victims {
			if got := field(t, "machine.cluster.x-k8s.io/"+machine, `.status.conditions[?(@.type=="HealthCheckSucceeded")].status`); got != "False" {
				return fmt.Sprintf("HealthCheckSucceeded of %s is %q, want False", machine, got)
			}
		}
		return ""
	})
	if got := field(t, "machinehealthcheck/mortal", `.status.conditions[?(@.type=="RemediationAllowed")].reason`); got != "TooManyUnhealthy" {
		t.Errorf("the check says %q, want TooManyUnhealthy", got)
	}
	if got := field(t, "machinehealthcheck/mortal", ".status.remediationsAllowed"); got != "0" {
		t.Errorf("the check allows %s remediations, want none", got)
	}
	for _, machine := range victims {
		if at := field(t, "machine.cluster.x-k8s.io/"+machine, ".metadata.deletionTimestamp"); at != "" {
			t.Errorf("Machine %s was deleted at %s with more dead than allowed", machine, at)
		}
	}

	bed.Run(t, "kubectl", "patch", "machinehealthcheck/mortal", "--type=merge", "--patch", `{"spec":{"remediation":{"triggerIf":{"unhealthyLessThanOrEqualTo":2}}}}`)
	replaced(dead...)
	bed.DeleteCluster(t, cluster)
}
