package machinehealthcheck

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/conditions"
)

// setStatus writes the counters of a check, and whether it has Machines remediated.
func setStatus(check *clusterv1.MachineHealthCheck, p plan) {
	status := &check.Status
	status.ObservedGeneration = check.Generation
	status.ExpectedMachines = ptr.To(int32(len(p.verdicts)))
	status.CurrentHealthy = ptr.To(int32(p.healthy))
	status.RemediationsAllowed = ptr.To(int32(p.remaining))
	status.Targets = nil
	for _, v := range p.verdicts {
		status.Targets = append(status.Targets, v.machine.Name)
	}
	conditions.Set(check, p.allowed)
}

// isRestricted tells whether Machines are left alone that are not healthy. A range that asks for several of them is no
// restriction while all are well.
func isRestricted(check *clusterv1.MachineHealthCheck) bool {
	return conditions.IsFalse(check, clusterv1.MachineHealthCheckRemediationAllowedCondition) &&
		ptr.Deref(check.Status.ExpectedMachines, 0) != ptr.Deref(check.Status.CurrentHealthy, 0)
}

// saysLeftOut tells whether a check says that it leaves Machines to an older one.
func saysLeftOut(check *clusterv1.MachineHealthCheck) bool {
	have := conditions.Get(check, clusterv1.MachineHealthCheckRemediationAllowedCondition)
	return have != nil && strings.Contains(have.Message, leftOutPrefix)
}

// setHealth tells the verdict on a Machine; what was said before stays where there is none.
func (v verdict) setHealth(machine *clusterv1.Machine) {
	const kind = clusterv1.MachineHealthCheckSucceededCondition
	switch v.health {
	case healthy:
		conditions.Set(machine, conditions.True(kind, clusterv1.MachineHealthCheckSucceededReason, ""))
	case failed:
		conditions.Set(machine, conditions.False(kind, v.reason, "%s", v.message))
	}
}

// setOwnerRemediated asks the owner of a Machine to replace it, or takes that back. What the owner says itself, that it
// is at it or that it cannot, is the owner's to change; only what has not begun can be taken back.
func setOwnerRemediated(machine *clusterv1.Machine, todo remedy) {
	const kind = clusterv1.MachineOwnerRemediatedCondition
	have := conditions.Get(machine, kind)
	switch {
	case todo == ask && (have == nil || have.Status != metav1.ConditionFalse):
		conditions.Set(machine, conditions.False(kind, clusterv1.MachineOwnerRemediatedWaitingForRemediationReason, ""))
	case todo == withdraw && have != nil && have.Status == metav1.ConditionFalse && notBegun(have.Reason):
		conditions.Delete(machine, kind)
	}
}

// notBegun tells whether the reason of OwnerRemediated=False says that nothing has been done yet.
func notBegun(reason string) bool {
	return reason == clusterv1.MachineOwnerRemediatedWaitingForRemediationReason ||
		reason == clusterv1.MachineSetMachineRemediationDeferredReason
}
