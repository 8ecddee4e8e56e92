package lifecycle

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/conditions"
)

// blockedMark ends the sentence that stands before the list of what blocks.
const blockedMark = " blocked:\n* "

// ScalingUp is the condition of an object that has some Machines and wants some. blocked lists what keeps it from
// creating any; it is told even when none is missing.
func ScalingUp(have, want int, blocked []string) metav1.Condition {
	causes := ""
	if len(blocked) > 0 {
		causes = blockedMark + strings.Join(blocked, "\n* ")
	}
	switch {
	case have < want && causes != "":
		return conditions.True(clusterv1.ScalingUpCondition, clusterv1.ScalingUpReason, "Scaling up from %d to %d replicas is%s", have, want, causes)
	case have < want:
		return conditions.True(clusterv1.ScalingUpCondition, clusterv1.ScalingUpReason, "Scaling up from %d to %d replicas", have, want)
	case causes != "":
		return conditions.False(clusterv1.ScalingUpCondition, clusterv1.NotScalingUpReason, "Scaling up would be%s", causes)
	}
	return conditions.False(clusterv1.ScalingUpCondition, clusterv1.NotScalingUpReason, "")
}

// Blocked returns what a message of ScalingUp says is in the way, nil when nothing is.
func Blocked(scalingUp *metav1.Condition) []string {
	if scalingUp == nil {
		return nil
	}
	_, causes, found := strings.Cut(scalingUp.Message, blockedMark)
	if !found {
		return nil
	}
	return strings.Split(causes, "\n* ")
}

// ScalingDown is the condition of an object that has some Machines and wants some.
func ScalingDown(have, want int) metav1.Condition {
	if have > want {
		return conditions.True(clusterv1.ScalingDownCondition, clusterv1.ScalingDownReason, "Scaling down from %d to %d replicas", have, want)
	}
	return conditions.False(clusterv1.ScalingDownCondition, clusterv1.NotScalingDownReason, "")
}

// ReplicasUnset is the value of ScalingUp, ScalingDown or Available where the number of replicas could not be defaulted.
func ReplicasUnset(condition string, cause error) metav1.Condition {
	return conditions.Unknown(condition, clusterv1.WaitingForReplicasSetReason, "%s", fmt.Sprint("spec.replicas is not set and has no default: ", cause))
}

// CountTrue returns how many Machines have a condition True.
func CountTrue(machines []*clusterv1.Machine, condition string) *int32 {
	var n int32
	for _, machine := range machines {
		if conditions.IsTrue(machine, condition) {
			n++
		}
	}
	return &n
}

// MachinesReady folds the condition Ready of an owner's Machines.
func MachinesReady(machines []*clusterv1.Machine) metav1.Condition {
	return conditions.Aggregate(machines, conditions.Aggregation{
		From: clusterv1.MachineReadyCondition, To: clusterv1.MachinesReadyCondition, Kind: "Machine",
		True: clusterv1.ReadyReason, False: clusterv1.NotReadyReason, Unknown: clusterv1.ReadyUnknownReason, Empty: clusterv1.NoReplicasReason,
	})
}

// MachinesUpToDate folds the condition UpToDate of an owner's Machines.
func MachinesUpToDate(machines []*clusterv1.Machine) metav1.Condition {
	return conditions.Aggregate(machines, conditions.Aggregation{
		From: clusterv1.MachineUpToDateCondition, To: clusterv1.MachinesUpToDateCondition, Kind: "Machine",
		True: clusterv1.UpToDateReason, False: clusterv1.NotUpToDateReason, Unknown: clusterv1.UpToDateUnknownReason, Empty: clusterv1.NoReplicasReason,
	})
}
