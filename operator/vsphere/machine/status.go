package machine

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/millwright-dev/millwright/api/infrastructure/v1beta2"
	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/vcenter"
	"github.com/millwright-dev/millwright/operator/vsphere/identity"
)

// Reasons of CloneModeHonoured.
const (
	noSnapshotReason      = "NoSnapshot"
	diskSizeIgnoredReason = "DiskSizeIgnored"
)

// setStep shows a step in the conditions.
func setStep(m *infrav1.VSphereMachine, s step) {
	if s.reason == clusterv1.ProvisionedReason {
		setProvisioned(m, conditions.True(infrav1.VirtualMachineProvisionedCondition, s.reason, ""))
		return
	}
	setProvisioned(m, conditions.False(infrav1.VirtualMachineProvisionedCondition, s.reason, "%s", s.message))
}

// setError shows a failure in the conditions. Of a machine that was provisioned it makes the state unknown, not bad: it
// goes on running when vCenter is away. Failures of the API server, and the end of a session whose credentials changed, are
// no news of the machine, and over at the next try.
func setError(m *infrav1.VSphereMachine, err error) {
	var refused apierrors.APIStatus
	if errors.As(err, &refused) || errors.Is(err, context.Canceled) || errors.Is(err, vcenter.ErrClosed) {
		return
	}
	reason := reasonOf(err)
	if m.DeletionTimestamp.IsZero() && isTrue(m.Status.Initialization.Provisioned) {
		setProvisioned(m, conditions.Unknown(infrav1.VirtualMachineProvisionedCondition, reason, "%s", err.Error()))
		return
	}
	setProvisioned(m, conditions.False(infrav1.VirtualMachineProvisionedCondition, reason, "%s", err.Error()))
}

func reasonOf(err error) string {
	if reason := identity.Reason(err); reason != "" {
		return reason
	}
	var (
		problem   *problemError
		notFound  *vcenter.NotFoundError
		ambiguous *vcenter.AmbiguousError
		invalid   *vcenter.InvalidError
		task      *vcenter.TaskError
	)
	switch {
	case errors.As(err, &problem):
		return problem.reason
	case errors.As(err, &notFound), errors.As(err, &ambiguous):
		return infrav1.InventoryNotFoundReason
	case errors.As(err, &invalid):
		return infrav1.InvalidSpecReason
	case errors.As(err, &task):
		return infrav1.TaskFailedReason
	}
	return clusterv1.NotProvisionedReason
}

// problemError is a failure with a reason of its own for the condition.
type problemError struct{ reason, message string }

func (e *problemError) Error() string { return e.message }

func problem(reason, format string, args ...any) error {
	return &problemError{reason, fmt.Sprintf(format, args...)}
}

func setProvisioned(m *infrav1.VSphereMachine, c metav1.Condition) {
	conditions.Set(m, c)
	conditions.Set(m, conditions.Summary(m, clusterv1.ReadyCondition,
		conditions.Reasons{True: clusterv1.ReadyReason, False: clusterv1.NotReadyReason, Unknown: clusterv1.ReadyUnknownReason},
		[]conditions.Part{{Type: infrav1.VirtualMachineProvisionedCondition}}))
}

// setCloneMode tells where a linked clone that was asked for by name is not what it seems.
func setCloneMode(m *infrav1.VSphereMachine, asked infrav1.CloneMode, plan *vcenter.ClonePlan, diskGiB int32) {
	switch {
	case asked == infrav1.LinkedClone && !plan.Linked:
		conditions.Set(m, conditions.False(infrav1.CloneModeHonouredCondition, noSnapshotReason,
			"template %q has no snapshot, which a linked clone needs: a full clone is made; take a snapshot of the template, or ask for fullClone", plan.TemplateName))
	case plan.Linked && diskGiB > 0 && diskGiB != plan.TemplateDiskGiB:
		conditions.Set(m, conditions.False(infrav1.CloneModeHonouredCondition, diskSizeIgnoredReason,
			"a linked clone keeps the disk size of its template, %d GiB: diskGiB %d is ignored; ask for fullClone to grow it", plan.TemplateDiskGiB, diskGiB))
	default:
		conditions.Delete(m, infrav1.CloneModeHonouredCondition)
	}
}

// tell records an event when what VirtualMachineProvisioned says has changed from before.
func (r *Reconciler) tell(m *infrav1.VSphereMachine, before *metav1.Condition) {
	after := conditions.Get(m, infrav1.VirtualMachineProvisionedCondition)
	if after == nil || before != nil && before.Reason == after.Reason {
		return
	}
	switch after.Reason {
	case clusterv1.ProvisionedReason, infrav1.WaitingForClusterInfrastructureReadyReason, infrav1.WaitingForBootstrapDataReason, infrav1.WaitingForCloneSlotReason,
		infrav1.WaitingForCloneReason, infrav1.ConfiguringReason, infrav1.PoweringOnReason, infrav1.WaitingForIPAllocationReason, clusterv1.DeletingReason:
		// Stations on the way; the condition is enough.
	default:
		r.Recorder.Eventf(m, nil, corev1.EventTypeWarning, after.Reason, "Provision", "%s", after.Message)
	}
}
