package endurance

import (
	"fmt"
	"testing"
	"time"

	"github.com/millwright-dev/millwright/test/sandboxtest"
)

// checkOfControlPlane asks for the replacement of control plane machines.
const checkOfControlPlane = `
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachineHealthCheck
metadata: {name: lonely}
spec:
  clusterName: lonely
  selector: {matchLabels: {cluster.x-k8s.io/control-plane: ""}}
  checks:
    unhealthyNodeConditions:
    - {type: Ready, status: Unknown, timeoutSeconds: 30}
`

func TestTheOnlyControlPlaneIsNeverDestroyedWhenItDies(t *testing.T) {
	slow(t)
	t.Parallel()
	const cluster = "lonely"
	bed.Create(t, cluster, 0)
	if got := bed.Try(t, nil, checkOfControlPlane, "kubectl", "apply", "-f", "-"); got.Code != 0 {
		t.Fatalf("apply the check: %s", got.Stderr)
	}
	_, settle := writing(t, bed.Kubeconfig(t, cluster))
	machine := bed.Machines(t, cluster)[0]
	uid := field(t, "machine.cluster.x-k8s.io/"+machine, ".metadata.uid")

	bed.KillGuest(t, machine)
	// A dead API server tells of no unhealthy Node: a person says that the machine is lost.
	bed.Run(t, "kubectl", "annotate", "machine.cluster.x-k8s.io", machine, "cluster.x-k8s.io/remediate-machine=")
	wantCondition(t, "machine.cluster.x-k8s.io/"+machine, "OwnerRemediated", "False")
	wantCondition(t, "cluster/"+cluster, "RemoteConnectionProbe", "False")
	wantCondition(t, "kubeadmcontrolplane/"+cluster, "Available", "Unknown")

	bed.Run(t, "kubectl", "annotate", "machine.cluster.x-k8s.io", machine, "cluster.x-k8s.io/remediate-machine-")
	bed.Reset(t, machine)
	bed.WaitReady(t, cluster)
	bed.WantMembers(t, cluster, 1)
	if got := field(t, "machine.cluster.x-k8s.io/"+machine, ".metadata.uid"); got != uid {
		t.Errorf("Machine %s has UID %s, had %s: it was replaced", machine, got, uid)
	}
	settle()
	bed.DeleteCluster(t, cluster)
}

func wantCondition(t *testing.T, object, kind, want string) {
	t.Helper()
	sandboxtest.Eventually(t, 5*time.Minute, func() string {
		if got := field(t, object, `.status.conditions[?(@.type=="`+kind+`")].status`); got != want {
			return fmt.Sprintf("%s: %s is %q, want %s", object, kind, got, want)
		}
		return ""
	})
}
