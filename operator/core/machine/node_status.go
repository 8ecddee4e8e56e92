package machine

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/conditions"
)

// connectionGrace is how long the Node's conditions stay as they are while the workload cluster does not answer: while
// the operator starts, or the only API server of a cluster restarts, Machines must not flap.
const connectionGrace = 40 * time.Second

// noCloudProvider is told while a Node's providerID is empty; the machine works all the same.
const noCloudProvider = "No cloud provider has set spec.providerID of Node %s; it was found by its system UUID. " +
	"Install the cloud provider of the infrastructure: until then the Node keeps the taint that it sets on cloud nodes"

// nodeConditions returns NodeHealthy and NodeReady. The third result is when a grace period ends, zero when none runs.
func nodeConditions(s *snapshot) (healthy, ready metav1.Condition, again time.Duration) {
	if s.node != nil {
		return healthyCondition(s), nodeReadyCondition(s.node), 0
	}
	if kept, left := keepDuringGrace(s); left > 0 {
		return kept[0], kept[1], left
	}
	status, reason, message := noNode(s)
	both := func(kind string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
	}
	return both(clusterv1.MachineNodeHealthyCondition), both(clusterv1.MachineNodeReadyCondition), 0
}

// keepDuringGrace returns the conditions as they are while the connection has not been lost for long.
func keepDuringGrace(s *snapshot) ([2]metav1.Condition, time.Duration) {
	healthy := conditions.Get(s.machine, clusterv1.MachineNodeHealthyCondition)
	ready := conditions.Get(s.machine, clusterv1.MachineNodeReadyCondition)
	if s.connection != nil || s.nodeBefore == "" || healthy == nil || ready == nil || s.health.Since.IsZero() {
		return [2]metav1.Condition{}, 0
	}
	return [2]metav1.Condition{*healthy, *ready}, connectionGrace - s.now.Sub(s.health.Since)
}

// noNode tells why there is no Node to look at.
func noNode(s *snapshot) (metav1.ConditionStatus, string, string) {
	waiting := func(format string, args ...any) (metav1.ConditionStatus, string, string) {
		return metav1.ConditionUnknown, clusterv1.MachineNodeInspectionFailedReason, fmt.Sprintf(format, args...)
	}
	switch {
	case s.cluster == nil:
		return waiting("Cluster %q does not exist: create it or correct spec.clusterName", s.machine.Spec.ClusterName)
	case s.nodeErr != nil:
		return metav1.ConditionUnknown, clusterv1.MachineNodeInternalErrorReason, s.nodeErr.Error()
	case s.connection == nil && s.nodeBefore != "":
		message := fmt.Sprintf("The API server of Cluster %q does not answer", s.cluster.Name)
		if !s.health.LastSuccess.IsZero() {
			message += " since " + stamp(s.health.LastSuccess)
		}
		return metav1.ConditionUnknown, clusterv1.MachineNodeConnectionDownReason, message
	case s.connection != nil && s.nodeBefore != "" && !s.machine.DeletionTimestamp.IsZero():
		return metav1.ConditionFalse, clusterv1.MachineNodeDeletedReason, fmt.Sprintf("Node %s has been deleted", s.nodeBefore)
	case s.connection != nil && s.nodeBefore != "":
		return metav1.ConditionFalse, clusterv1.MachineNodeDeletedReason,
			fmt.Sprintf("Node %s has been deleted while the Machine still exists: delete the Machine to have it replaced", s.nodeBefore)
	case s.providerID() == "":
		return waiting("Waiting for %s to report spec.providerID", s.infrastructure.ref.Kind)
	case !isTrue(s.cluster.Status.Initialization.ControlPlaneInitialized):
		return waiting("Waiting for the control plane of Cluster %q to be initialized", s.cluster.Name)
	case s.connection == nil:
		return waiting("Waiting for a connection to Cluster %q", s.cluster.Name)
	}
	return waiting("Waiting for a Node with spec.providerID %s to exist", s.providerID())
}

// healthyCondition is True when the Node is ready and under no pressure.
func healthyCondition(s *snapshot) metav1.Condition {
	const kind = clusterv1.MachineNodeHealthyCondition
	var bad, unknown []string
	for _, expected := range []struct {
		kind   corev1.NodeConditionType
		status corev1.ConditionStatus
	}{
		{corev1.NodeReady, corev1.ConditionTrue},
		{corev1.NodeMemoryPressure, corev1.ConditionFalse},
		{corev1.NodeDiskPressure, corev1.ConditionFalse},
		{corev1.NodePIDPressure, corev1.ConditionFalse},
	} {
		have := nodeCondition(s.node, expected.kind)
		switch {
		case have == nil && expected.kind == corev1.NodeReady:
			unknown = append(unknown, "Node.Ready: condition not yet reported")
		case have == nil || have.Status == expected.status:
		case have.Status == corev1.ConditionUnknown:
			unknown = append(unknown, fmt.Sprintf("Node.%s: %s", have.Type, have.Message))
		default:
			bad = append(bad, fmt.Sprintf("Node.%s: %s", have.Type, have.Message))
		}
	}
	switch {
	case len(bad) > 0:
		return conditions.False(kind, clusterv1.MachineNodeNotHealthyReason, "%s", bullets(append(bad, unknown...)))
	case len(unknown) > 0:
		return conditions.Unknown(kind, clusterv1.MachineNodeHealthUnknownReason, "%s", bullets(unknown))
	case s.byUUID:
		return conditions.True(kind, clusterv1.MachineNodeHealthyReason, noCloudProvider, s.node.Name)
	}
	return conditions.True(kind, clusterv1.MachineNodeHealthyReason, "")
}

// nodeReadyCondition mirrors the Node's condition Ready.
func nodeReadyCondition(node *corev1.Node) metav1.Condition {
	const kind = clusterv1.MachineNodeReadyCondition
	have := nodeCondition(node, corev1.NodeReady)
	switch {
	case have == nil:
		return conditions.Unknown(kind, clusterv1.MachineNodeReadyUnknownReason, "Condition Ready not yet reported")
	case have.Status == corev1.ConditionTrue:
		return conditions.True(kind, clusterv1.MachineNodeReadyReason, "")
	case have.Status == corev1.ConditionFalse:
		return conditions.False(kind, clusterv1.MachineNodeNotReadyReason, "%s", have.Message)
	}
	return conditions.Unknown(kind, clusterv1.MachineNodeReadyUnknownReason, "%s", have.Message)
}

func nodeCondition(node *corev1.Node, kind corev1.NodeConditionType) *corev1.NodeCondition {
	for i := range node.Status.Conditions {
		if node.Status.Conditions[i].Type == kind {
			return &node.Status.Conditions[i]
		}
	}
	return nil
}
