package machine

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/drain"
)

// unreachableForGood is how long a kubelet must be silent before its Node counts as lost. After these five minutes
// Kubernetes itself gives up the pods (the default toleration of node.kubernetes.io/unreachable), and nothing can
// terminate them there.
const unreachableForGood = 5 * time.Minute

// skipDrain tells whether there is nothing to drain, or nobody who could.
func skipDrain(s *snapshot) bool {
	_, excluded := s.machine.Annotations[clusterv1.ExcludeNodeDrainingAnnotation]
	return excluded || nodeIsLost(s)
}

// skipVolumes tells the same of the wait for volumes.
func skipVolumes(s *snapshot) bool {
	_, excluded := s.machine.Annotations[clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation]
	return excluded || nodeIsLost(s)
}

// nodeIsLost tells whether the Node needs no care any more: its cluster goes, its infrastructure already goes (the steps
// before that were passed), it is gone, or its kubelet has been silent for too long.
func nodeIsLost(s *snapshot) bool {
	switch {
	case s.clusterGoing(), s.lastControlPlane, s.infrastructure.going():
		return true
	case !s.machine.Status.Deletion.WaitForPreTerminateHookStartTime.IsZero():
		return true
	case s.node == nil && s.nodeErr == nil && (s.connection != nil || s.nodeBefore == ""):
		return true
	}
	return s.node != nil && unreachableFor(s.node, s.now) >= unreachableForGood
}

// unreachableFor returns how long the kubelet has been silent; zero when it is not.
func unreachableFor(node *corev1.Node, now time.Time) time.Duration {
	ready := nodeCondition(node, corev1.NodeReady)
	if ready == nil || ready.Status != corev1.ConditionUnknown {
		return 0
	}
	return max(now.Sub(ready.LastTransitionTime.Time), time.Nanosecond)
}

// unreachableMessage tells what to do when a step needs an API server that does not answer.
func unreachableMessage(s *snapshot, what, annotation string) string {
	return fmt.Sprintf("Cannot %s Node %s: the API server of Cluster %q does not answer (%s). Annotate the Machine with %s to go on without",
		what, s.nodeBefore, s.machine.Spec.ClusterName, s.health.Cause(), annotation)
}

// drainMessage tells since when the drain goes on, and names each pod that holds it up.
func drainMessage(progress drain.Progress, started time.Time) string {
	return fmt.Sprintf("Drain not completed yet (started at %s):\n* %s", stamp(started), strings.Join(progress.Lines(), "\n* "))
}
