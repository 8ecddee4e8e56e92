package controlplane

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"

	"github.com/millwright-dev/millwright/internal/conditions"
)

// components are the static pods of a control plane machine and the condition that each has.
var components = []struct{ name, condition string }{
	{"kube-apiserver", controlplanev1.KubeadmControlPlaneMachineAPIServerPodHealthyCondition},
	{"kube-controller-manager", controlplanev1.KubeadmControlPlaneMachineControllerManagerPodHealthyCondition},
	{"kube-scheduler", controlplanev1.KubeadmControlPlaneMachineSchedulerPodHealthyCondition},
	{"etcd", controlplanev1.KubeadmControlPlaneMachineEtcdPodHealthyCondition},
}

const (
	nodeCondition   = controlplanev1.KubeadmControlPlaneMachineNodeKubeadmLabelsAndTaintsSetCondition
	memberCondition = controlplanev1.KubeadmControlPlaneMachineEtcdMemberHealthyCondition

	// controlPlaneRole is the label that kubeadm puts on a control plane Node, in one step with its taint.
	controlPlaneRole = "node-role.kubernetes.io/control-plane"
)

// podName is that of a mirror pod: the kubelet appends the Node's name to the manifest's.
func podName(component, node string) string { return component + "-" + node }

// machineConditions returns the conditions that the control plane sets on one of its Machines. What
// cannot be known is Unknown, never False: an unreachable cluster may be in the best of health.
func machineConditions(s *snapshot, r *replica) []metav1.Condition {
	if reason, message, status := unobservable(s, r); message != "" {
		var out []metav1.Condition
		for _, conditionType := range s.gates() {
			out = append(out, metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: message})
		}
		return out
	}
	out := []metav1.Condition{labelsAndTaints(s, r)}
	for _, component := range components {
		if component.name == "etcd" && !s.stackedEtcd() {
			continue
		}
		out = append(out, podHealth(s, r.node(), component.name, component.condition))
	}
	if s.stackedEtcd() {
		out = append(out, memberHealth(s, r))
	}
	return out
}

// unobservable says why nothing on the Machine can be judged, if so. The reasons of all our conditions
// have the same names.
func unobservable(s *snapshot, r *replica) (reason, message string, status metav1.ConditionStatus) {
	unknown := metav1.ConditionUnknown
	failed := controlplanev1.KubeadmControlPlaneMachinePodInspectionFailedReason
	node := s.workload.nodes[r.node()]
	switch {
	case r.released():
		return controlplanev1.KubeadmControlPlaneMachinePodDeletingReason, "Machine is being deleted", metav1.ConditionFalse
	case !s.workload.connected && s.workload.lastSeen.IsZero():
		return failed, "Waiting for the API server of the Cluster to answer for the first time", unknown
	case !s.workload.connected:
		return controlplanev1.KubeadmControlPlaneMachinePodConnectionDownReason,
			"The API server of the Cluster last answered at " + s.workload.lastSeen.UTC().Format(time.RFC3339), unknown
	case r.node() == "":
		return failed, "Waiting for the Node of the Machine", unknown
	case s.workload.failures[r.node()] != nil:
		return failed, fmt.Sprintf("Node %s cannot be read: %s", r.node(), s.workload.failures[r.node()]), unknown
	case node == nil:
		return failed, "Node " + r.node() + " does not exist", unknown
	case unreachable(node):
		return failed, "Node " + r.node() + " is unreachable", unknown
	}
	return "", "", ""
}

// unreachable tells whether the Node's kubelet has fallen silent: what it last said of its pods is stale.
func unreachable(node *corev1.Node) bool {
	for _, taint := range node.Spec.Taints {
		if taint.Key == corev1.TaintNodeUnreachable {
			return true
		}
	}
	return false
}

func labelsAndTaints(s *snapshot, r *replica) metav1.Condition {
	if _, ok := s.workload.nodes[r.node()].Labels[controlPlaneRole]; !ok {
		return conditions.False(nodeCondition, controlplanev1.KubeadmControlPlaneMachineNodeKubeadmLabelsAndTaintsNotSetReason,
			"Node %s has no label %s: kubeadm has not finished", r.node(), controlPlaneRole)
	}
	return conditions.True(nodeCondition, controlplanev1.KubeadmControlPlaneMachineNodeKubeadmLabelsAndTaintsSetReason, "")
}

func podHealth(s *snapshot, node, component, conditionType string) metav1.Condition {
	name := podName(component, node)
	pod := s.workload.pods[name]
	if pod != nil && ofEarlierNode(pod, s.workload.nodes[node]) {
		pod = nil
	}
	switch {
	case s.workload.failures[name] != nil:
		return conditions.Unknown(conditionType, controlplanev1.KubeadmControlPlaneMachinePodInspectionFailedReason,
			"Pod %s cannot be read: %s", name, s.workload.failures[name])
	case pod == nil:
		return conditions.False(conditionType, controlplanev1.KubeadmControlPlaneMachinePodDoesNotExistReason, "Pod %s does not exist", name)
	case !pod.DeletionTimestamp.IsZero():
		return conditions.False(conditionType, controlplanev1.KubeadmControlPlaneMachinePodDeletingReason, "Pod %s is being deleted", name)
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return conditions.True(conditionType, controlplanev1.KubeadmControlPlaneMachinePodRunningReason, "")
		}
	}
	reason, message := whyNotReady(pod)
	return conditions.False(conditionType, reason, "Pod %s: %s", name, message)
}

// ofEarlierNode tells whether a mirror pod was left behind by a Node of the same name: names of machines
// are used again, and pods outlive their Nodes by a while. The kubelet makes its Node their owner.
func ofEarlierNode(pod *corev1.Pod, node *corev1.Node) bool {
	for _, owner := range pod.OwnerReferences {
		if owner.Kind == "Node" && owner.Name == node.Name {
			return owner.UID != node.UID
		}
	}
	return false
}

// whyNotReady tells a pod that is starting from one that has failed.
func whyNotReady(pod *corev1.Pod) (reason, message string) {
	for _, status := range pod.Status.ContainerStatuses {
		switch {
		case status.State.Waiting != nil && status.State.Waiting.Reason != "" && status.State.Waiting.Reason != "ContainerCreating":
			return controlplanev1.KubeadmControlPlaneMachinePodFailedReason, status.State.Waiting.Reason
		case status.State.Terminated != nil:
			return controlplanev1.KubeadmControlPlaneMachinePodFailedReason, fmt.Sprintf("container %s ended with exit code %d", status.Name, status.State.Terminated.ExitCode)
		}
	}
	if pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
		return controlplanev1.KubeadmControlPlaneMachinePodFailedReason, "phase is " + string(pod.Status.Phase)
	}
	return controlplanev1.KubeadmControlPlaneMachinePodProvisioningReason, "not ready yet"
}

func memberHealth(s *snapshot, r *replica) metav1.Condition {
	if s.workload.etcd == nil {
		return conditions.Unknown(memberCondition, controlplanev1.KubeadmControlPlaneMachineEtcdMemberInspectionFailedReason, "%s", orUnknown(s.workload.etcdErr))
	}
	bad := func(format string, args ...any) metav1.Condition {
		return conditions.False(memberCondition, controlplanev1.KubeadmControlPlaneMachineEtcdMemberNotHealthyReason, format, args...)
	}
	member := memberOf(s, r)
	switch {
	case member == nil:
		return bad("etcd has no member of Node %s", r.node())
	case member.Learner:
		return bad("The etcd member is still learning")
	case len(member.Alarms) > 0:
		return bad("The etcd member has raised alarms: %s", strings.Join(member.Alarms, ", "))
	}
	return conditions.True(memberCondition, controlplanev1.KubeadmControlPlaneMachineEtcdMemberHealthyReason, "")
}

const (
	// watchClosely and watchAgain are the intervals at which a control plane is looked at while
	// something is not healthy: first closely, as when it starts, later as a fault that lasts.
	watchClosely = 2 * time.Second
	watchAgain   = 15 * time.Second
	// closelyFor is how long a change is young.
	closelyFor = 5 * time.Minute
	// watchHealthy is the interval when all is well: static pods and etcd members are not watched.
	watchHealthy = time.Minute
	// watchKubeadm is the interval between an API server that answers and the end of kubeadm init,
	// which lies a second or two later.
	watchKubeadm = 500 * time.Millisecond
)

// lookAgain returns when the workload cluster is to be inspected again; zero means that an event tells:
// while there is no Node, the Machine's or the connection's.
func lookAgain(s *snapshot) time.Duration {
	if !s.workload.connected {
		// Then more is told.
		return earliest(s.workload.settling, max(0, s.workload.lastSeen.Add(lostAfter).Sub(s.now)))
	}
	if len(s.replicas) == 0 {
		return 0
	}
	if !s.initialized() {
		return watchKubeadm
	}
	wait := watchHealthy
	for _, r := range s.replicas {
		if r.node() == "" || r.released() || len(notTrue(r, s.gates())) == 0 {
			continue
		}
		if s.now.Sub(lastChange(r, s.gates())) < closelyFor {
			return watchClosely
		}
		wait = watchAgain
	}
	if len(foreignMembers(s)) > 0 {
		wait = min(wait, watchAgain)
	}
	return wait
}

func lastChange(r *replica, conditionTypes []string) time.Time {
	last := r.machine.CreationTimestamp.Time
	for _, conditionType := range conditionTypes {
		if c := conditions.Get(r.machine, conditionType); c != nil && c.LastTransitionTime.After(last) {
			last = c.LastTransitionTime.Time
		}
	}
	return last
}
