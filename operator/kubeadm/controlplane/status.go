package controlplane

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/contract"
	"github.com/millwright-dev/millwright/internal/etcd"
	"github.com/millwright-dev/millwright/internal/lifecycle"
	"github.com/millwright-dev/millwright/operator/kubeadm/certificates"
)

// report is what a reconcile adds to the snapshot for the status.
type report struct {
	// waiting says what the control plane as a whole waits for before it makes Machines.
	waiting string
	// blocked says why the number of Machines cannot be reached just now.
	blocked []string
	// unfinished says what keeps kube-proxy or CoreDNS from the version of the machines.
	unfinished []string
	// certificates is nil when they exist and can serve.
	certificates error
	// deleting says what the deletion waits for.
	deletingReason, deletingMessage string
	// again is when time alone allows the next step; zero for never.
	again time.Duration
}

// setStatus writes counters and conditions of a control plane.
func setStatus(s *snapshot, r report) {
	cp, machines := s.controlPlane, s.machines()
	cp.Status.ObservedGeneration = cp.Generation
	cp.Status.Selector = selector(cp, s.cluster.Name).String()
	cp.Status.Replicas = ptr.To(int32(len(machines)))
	cp.Status.ReadyReplicas = count(machines, clusterv1.MachineReadyCondition)
	cp.Status.AvailableReplicas = count(machines, clusterv1.MachineAvailableCondition)
	cp.Status.UpToDateReplicas = count(machines, clusterv1.MachineUpToDateCondition)
	cp.Status.LastRemediation = lastRemediation(s)
	cp.Status.Versions = lifecycle.CountVersions(machines)
	if len(cp.Status.Versions) > 0 {
		//lint:ignore SA1019 Tools that do not know versions yet read it.
		cp.Status.Version = cp.Status.Versions[0].Version
	}

	conditions.Set(cp, certificatesAvailable(s, r))
	conditions.Set(cp, initialized(s))
	conditions.Set(cp, componentsHealthy(s, r))
	// The health of an external etcd is told by those who run it.
	if s.stackedEtcd() {
		conditions.Set(cp, etcdHealthy(s, r))
	}
	conditions.Set(cp, conditions.Aggregate(machines, conditions.Aggregation{
		From: clusterv1.MachineReadyCondition, To: controlplanev1.KubeadmControlPlaneMachinesReadyCondition, Kind: "Machine",
		True: controlplanev1.KubeadmControlPlaneMachinesReadyReason, False: controlplanev1.KubeadmControlPlaneMachinesNotReadyReason,
		Unknown: controlplanev1.KubeadmControlPlaneMachinesReadyUnknownReason, Empty: controlplanev1.KubeadmControlPlaneMachinesReadyNoReplicasReason,
	}))
	conditions.Set(cp, conditions.Aggregate(machines, conditions.Aggregation{
		From: clusterv1.MachineUpToDateCondition, To: controlplanev1.KubeadmControlPlaneMachinesUpToDateCondition, Kind: "Machine",
		True: controlplanev1.KubeadmControlPlaneMachinesUpToDateReason, False: controlplanev1.KubeadmControlPlaneMachinesNotUpToDateReason,
		Unknown: controlplanev1.KubeadmControlPlaneMachinesUpToDateUnknownReason, Empty: controlplanev1.KubeadmControlPlaneMachinesUpToDateNoReplicasReason,
	}))
	conditions.Set(cp, rollingOut(s, r))
	conditions.Set(cp, scalingUp(s, r))
	conditions.Set(cp, scalingDown(s, r))
	conditions.Set(cp, remediating(s))
	conditions.Set(cp, deleting(cp, r))
	conditions.Set(cp, available(s))
}

// selector finds the Machines of a control plane, for the scale subresource.
func selector(cp *controlplanev1.KubeadmControlPlane, cluster string) labels.Selector {
	return labels.SelectorFromSet(labels.Set{
		clusterv1.ClusterNameLabel:             cluster,
		clusterv1.MachineControlPlaneLabel:     "",
		clusterv1.MachineControlPlaneNameLabel: contract.LabelValue(cp.Name),
	})
}

func count(machines []*clusterv1.Machine, conditionType string) *int32 {
	var n int32
	for _, machine := range machines {
		if conditions.IsTrue(machine, conditionType) {
			n++
		}
	}
	return &n
}

func certificatesAvailable(s *snapshot, r report) metav1.Condition {
	const condition = controlplanev1.KubeadmControlPlaneCertificatesAvailableCondition
	have := conditions.Get(s.controlPlane, condition)
	switch {
	case r.certificates == nil && r.waiting != "" && have == nil:
		return conditions.Unknown(condition, controlplanev1.KubeadmControlPlaneCertificatesInternalErrorReason, "%s", r.waiting)
	case r.certificates == nil && r.waiting != "":
		return *have
	case r.certificates == nil:
		return conditions.True(condition, controlplanev1.KubeadmControlPlaneCertificatesAvailableReason, "")
	case certificates.ForTheUser(r.certificates):
		return conditions.False(condition, controlplanev1.KubeadmControlPlaneCertificatesNotAvailableReason, "%s", r.certificates)
	}
	return conditions.Unknown(condition, controlplanev1.KubeadmControlPlaneCertificatesInternalErrorReason, "%s", r.certificates)
}

func initialized(s *snapshot) metav1.Condition {
	const condition = controlplanev1.KubeadmControlPlaneInitializedCondition
	if s.initialized() {
		return conditions.True(condition, controlplanev1.KubeadmControlPlaneInitializedReason, "")
	}
	message := "No Machine has been made yet"
	switch {
	case s.workload.connected:
		message = "The API server answers; waiting for kubeadm init to finish"
	case len(s.replicas) > 0:
		message = "Waiting for the API server on Machine " + s.replicas[0].machine.Name
	}
	return conditions.False(condition, controlplanev1.KubeadmControlPlaneNotInitializedReason, "%s", message)
}

// componentsHealthy aggregates the static pods of all Machines.
func componentsHealthy(s *snapshot, r report) metav1.Condition {
	types := make([]string, 0, len(components)+1)
	for _, component := range components {
		if component.name != "etcd" || s.stackedEtcd() {
			types = append(types, component.condition)
		}
	}
	return fold(s, r, types, nil, folded{
		condition: controlplanev1.KubeadmControlPlaneControlPlaneComponentsHealthyCondition,
		good:      controlplanev1.KubeadmControlPlaneControlPlaneComponentsHealthyReason,
		bad:       controlplanev1.KubeadmControlPlaneControlPlaneComponentsNotHealthyReason,
		unknown:   controlplanev1.KubeadmControlPlaneControlPlaneComponentsHealthUnknownReason,
		down:      controlplanev1.KubeadmControlPlaneControlPlaneComponentsConnectionDownReason,
		uninspect: controlplanev1.KubeadmControlPlaneControlPlaneComponentsInspectionFailedReason,
	})
}

// etcdHealthy aggregates the members, and tells of those that no Machine has.
func etcdHealthy(s *snapshot, r report) metav1.Condition {
	return fold(s, r, []string{memberCondition}, foreignMembers(s), folded{
		condition: controlplanev1.KubeadmControlPlaneEtcdClusterHealthyCondition,
		good:      controlplanev1.KubeadmControlPlaneEtcdClusterHealthyReason,
		bad:       controlplanev1.KubeadmControlPlaneEtcdClusterNotHealthyReason,
		unknown:   controlplanev1.KubeadmControlPlaneEtcdClusterHealthUnknownReason,
		down:      controlplanev1.KubeadmControlPlaneEtcdClusterConnectionDownReason,
		uninspect: controlplanev1.KubeadmControlPlaneEtcdClusterInspectionFailedReason,
	})
}

// folded names a condition of the control plane that is made of some of its Machines' and its reasons.
type folded struct{ condition, good, bad, unknown, down, uninspect string }

func fold(s *snapshot, r report, types []string, extra []string, f folded) metav1.Condition {
	switch have := conditions.Get(s.controlPlane, f.condition); {
	case s.workload.settling > 0 && have != nil:
		return *have
	case r.waiting != "":
		return conditions.Unknown(f.condition, f.uninspect, "%s", r.waiting)
	case len(s.replicas) == 0:
		return conditions.Unknown(f.condition, f.unknown, "No Machine has been made yet")
	case !s.workload.connected && !s.workload.lastSeen.IsZero():
		_, message, _ := unobservable(s, &replica{machine: &clusterv1.Machine{}})
		return conditions.Unknown(f.condition, f.down, "%s", message)
	}
	result := conditions.True(f.condition, f.good, "")
	lines := make([]string, 0, len(s.replicas)+len(extra))
	if len(extra) > 0 {
		result.Status, result.Reason = metav1.ConditionFalse, f.bad
	}
	for _, replica := range s.replicas {
		bad := notGood(replica, types)
		// One that was let go is missed by nobody: its member has left before.
		if len(bad) == 0 || replica.released() {
			continue
		}
		lines = append(lines, fmt.Sprintf("* Machine %s: %s", replica.machine.Name, strings.Join(unique(bad), "; ")))
		if anyFalse(replica, types) {
			result.Status, result.Reason = metav1.ConditionFalse, f.bad
		} else if result.Status == metav1.ConditionTrue {
			result.Status, result.Reason = metav1.ConditionUnknown, f.unknown
		}
	}
	for _, line := range extra {
		lines = append(lines, "* "+line)
	}
	result.Message = strings.Join(lines, "\n")
	return result
}

func notGood(r *replica, types []string) []string {
	var messages []string
	for _, conditionType := range types {
		c := conditions.Get(r.machine, conditionType)
		switch {
		case c == nil:
			messages = append(messages, conditionType+" is not known yet")
		case c.Status != metav1.ConditionTrue:
			messages = append(messages, c.Message)
		}
	}
	return messages
}

func anyFalse(r *replica, types []string) bool {
	for _, conditionType := range types {
		if conditions.IsFalse(r.machine, conditionType) {
			return true
		}
	}
	return false
}

// unique leaves out repetitions: a Machine that cannot be looked at has one reason for four conditions.
func unique(lines []string) []string {
	seen := map[string]bool{}
	var out []string
	for _, line := range lines {
		if !seen[line] {
			seen[line] = true
			out = append(out, line)
		}
	}
	return out
}

func rollingOut(s *snapshot, r report) metav1.Condition {
	const condition = controlplanev1.KubeadmControlPlaneRollingOutCondition
	outdated := 0
	for _, replica := range s.replicas {
		// Those being deleted count until they are gone: the rollout is not over before.
		if replica.outdated() {
			outdated++
		}
	}
	switch after := s.controlPlane.Spec.Rollout.After.Time; {
	case outdated > 0:
		return conditions.True(condition, controlplanev1.KubeadmControlPlaneRollingOutReason, "%d of %d Machines are not up to date\n%s%s",
			outdated, len(s.replicas), strings.Join(reasonsToRoll(s), "\n"), waitingFor(r.blocked))
	case len(r.unfinished) > 0:
		return conditions.False(condition, controlplanev1.KubeadmControlPlaneNotRollingOutReason, "All Machines are up to date, but:\n* %s", strings.Join(r.unfinished, "\n* "))
	case s.now.Before(after):
		return conditions.False(condition, controlplanev1.KubeadmControlPlaneNotRollingOutReason, "A rollout begins at %s: spec.rollout.after", after.UTC().Format(time.RFC3339))
	}
	return conditions.False(condition, controlplanev1.KubeadmControlPlaneNotRollingOutReason, "")
}

// remediating is True while Machines failed their health check and are not replaced yet, and tells what each waits for.
func remediating(s *snapshot) metav1.Condition {
	const condition = controlplanev1.KubeadmControlPlaneRemediatingCondition
	var lines []string
	for _, r := range s.replicas {
		owed := conditions.Get(r.machine, clusterv1.MachineOwnerRemediatedCondition)
		if owed != nil && owed.Status == metav1.ConditionFalse && conditions.IsFalse(r.machine, clusterv1.MachineHealthCheckSucceededCondition) {
			lines = append(lines, "* Machine "+r.machine.Name+": "+cmp.Or(owed.Message, "Waiting to be replaced"))
		}
	}
	if len(lines) == 0 {
		return conditions.False(condition, controlplanev1.KubeadmControlPlaneNotRemediatingReason, "")
	}
	return conditions.True(condition, controlplanev1.KubeadmControlPlaneRemediatingReason, "%s", strings.Join(lines, "\n"))
}

// waitingFor tells what a rollout waits for, below its reasons.
func waitingFor(blocked []string) string {
	if len(blocked) == 0 {
		return ""
	}
	return "\nwaiting:\n* " + strings.Join(blocked, "\n* ")
}

func scalingUp(s *snapshot, r report) metav1.Condition {
	const condition = controlplanev1.KubeadmControlPlaneScalingUpCondition
	have, want := len(s.replicas), s.wanted()
	blocked := append([]string{}, r.blocked...)
	if r.waiting != "" {
		blocked = append([]string{r.waiting}, blocked...)
	}
	switch {
	case have < want && len(blocked) > 0:
		return conditions.True(condition, controlplanev1.KubeadmControlPlaneScalingUpReason,
			"Scaling up from %d to %d replicas waits:\n* %s", have, want, strings.Join(blocked, "\n* "))
	case have < want:
		return conditions.True(condition, controlplanev1.KubeadmControlPlaneScalingUpReason, "Scaling up from %d to %d replicas", have, want)
	case have == want && len(blocked) > 0 && s.controlPlane.DeletionTimestamp.IsZero():
		return conditions.False(condition, controlplanev1.KubeadmControlPlaneNotScalingUpReason, "* %s", strings.Join(blocked, "\n* "))
	}
	return conditions.False(condition, controlplanev1.KubeadmControlPlaneNotScalingUpReason, "")
}

func scalingDown(s *snapshot, r report) metav1.Condition {
	const condition = controlplanev1.KubeadmControlPlaneScalingDownCondition
	have, want := len(s.replicas), s.wanted()
	switch {
	case have > want && len(r.blocked) > 0:
		return conditions.True(condition, controlplanev1.KubeadmControlPlaneScalingDownReason,
			"Scaling down from %d to %d replicas waits:\n* %s", have, want, strings.Join(r.blocked, "\n* "))
	case have > want:
		return conditions.True(condition, controlplanev1.KubeadmControlPlaneScalingDownReason, "Scaling down from %d to %d replicas", have, want)
	}
	return conditions.False(condition, controlplanev1.KubeadmControlPlaneNotScalingDownReason, "")
}

// wanted is what the control plane is brought to: nothing once it is being deleted.
func (s *snapshot) wanted() int {
	if !s.controlPlane.DeletionTimestamp.IsZero() {
		return 0
	}
	return s.desired()
}

func deleting(cp *controlplanev1.KubeadmControlPlane, r report) metav1.Condition {
	const condition = controlplanev1.KubeadmControlPlaneDeletingCondition
	if cp.DeletionTimestamp.IsZero() {
		return conditions.False(condition, controlplanev1.KubeadmControlPlaneNotDeletingReason, "")
	}
	return conditions.True(condition, r.deletingReason, "%s", r.deletingMessage)
}

// available is True when the control plane serves: certificates exist, and one machine at least runs all
// components in good health. That etcd has told its members means that it has quorum: a member that has
// just been added, or is about to go, is no reason for alarm.
func available(s *snapshot) metav1.Condition {
	const condition = controlplanev1.KubeadmControlPlaneAvailableCondition
	not := func(format string, args ...any) metav1.Condition {
		return conditions.False(condition, controlplanev1.KubeadmControlPlaneNotAvailableReason, format, args...)
	}
	cp := s.controlPlane
	switch have := conditions.Get(cp, condition); {
	case !cp.DeletionTimestamp.IsZero():
		return not("The control plane is being deleted")
	case !s.initialized():
		return not("The control plane is not initialized")
	case !conditions.IsTrue(cp, controlplanev1.KubeadmControlPlaneCertificatesAvailableCondition):
		return not("Certificates are not available")
	case s.workload.settling > 0 && have != nil:
		return *have
	case !s.workload.connected:
		_, message, _ := unobservable(s, &replica{machine: &clusterv1.Machine{}})
		if quorumLost(s) && s.now.Sub(s.workload.lastSeen) >= lostAfter {
			message += ". To bring it back:\n" + recoverySteps(s)
		}
		return conditions.Unknown(condition, controlplanev1.KubeadmControlPlaneAvailableInspectionFailedReason, "%s", message)
	case errors.Is(s.workload.etcdErr, etcd.ErrNoLeader):
		return not("etcd has no leader: too few of its members answer each other. To bring it back:\n%s", recoverySteps(s))
	}
	known, serving := false, false
	for _, r := range s.replicas {
		serving = serving || r.serves(s.gates())
		known = known || anyFalse(r, s.gates())
	}
	switch {
	case !serving && !known:
		return conditions.Unknown(condition, controlplanev1.KubeadmControlPlaneAvailableInspectionFailedReason, "The state of no machine is known")
	case !serving:
		return not("No machine runs all control plane components in good health")
	}
	return conditions.True(condition, controlplanev1.KubeadmControlPlaneAvailableReason, "")
}
