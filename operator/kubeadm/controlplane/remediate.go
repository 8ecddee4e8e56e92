package controlplane

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/patch"
)

// remediate carries out what is planned about Machines that failed their health check, but for the deletion itself. The
// attempt is stored first: a try that is cut short after it counts one and the same again.
func (r *Reconciler) remediate(ctx context.Context, s *snapshot, todo remediation, helper *patch.Helper) error {
	const annotation = controlplanev1.RemediationInProgressAnnotation
	switch {
	case todo.remove != nil:
		if s.controlPlane.Annotations == nil {
			s.controlPlane.Annotations = map[string]string{}
		}
		s.controlPlane.Annotations[annotation] = todo.attempt.String()
	case todo.settled:
		delete(s.controlPlane.Annotations, annotation)
	}
	if _, err := helper.PatchButStatus(ctx, s.controlPlane); err != nil {
		return err
	}
	var errs []error
	for _, v := range todo.tell {
		of := patch.New(v.replica.machine, r.Client)
		if v.condition == nil {
			conditions.Delete(v.replica.machine, clusterv1.MachineOwnerRemediatedCondition)
		} else {
			conditions.Set(v.replica.machine, *v.condition)
		}
		if err := of.Patch(ctx, v.replica.machine); client.IgnoreNotFound(err) != nil {
			errs = append(errs, err)
		}
	}
	if todo.remove != nil && len(errs) == 0 {
		r.Recorder.Eventf(s.controlPlane, todo.remove.machine, corev1.EventTypeWarning, "Remediated", "Remediate",
			"Machine %q failed its health check and is replaced", todo.remove.machine.Name)
	}
	return errors.Join(errs...)
}

// replaced forgets an attempt on the control plane once the Machine in the place of the failed one bears it.
func (r *Reconciler) replaced(ctx context.Context, s *snapshot, helper *patch.Helper) error {
	if _, begun := s.controlPlane.Annotations[controlplanev1.RemediationInProgressAnnotation]; !begun {
		return nil
	}
	delete(s.controlPlane.Annotations, controlplanev1.RemediationInProgressAnnotation)
	_, err := helper.PatchButStatus(ctx, s.controlPlane)
	return err
}
