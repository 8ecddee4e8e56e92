package controlplane

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/lifecycle"
	"github.com/millwright-dev/millwright/internal/patch"
)

// anew is the next step of a control plane whose etcd a person has given up; a zero one waits.
type anew struct {
	// giveUp are deleted without drain, and let go without etcd.
	giveUp []*replica
	// reset makes the control plane one that is to be initialized.
	reset bool
}

// beginAnew returns the next step that the annotation asks for, nil without it, and why it is not taken.
func beginAnew(s *snapshot) (step *anew, refused string) {
	const name = lifecycle.BeginAnewAnnotation
	value, asked := s.controlPlane.Annotations[name]
	switch {
	case !asked || !s.cluster.DeletionTimestamp.IsZero():
		return nil, ""
	case value != s.controlPlane.Name:
		return nil, fmt.Sprintf("Annotation %s is %q: to confirm that what etcd holds is given up, set it to %q", name, value, s.controlPlane.Name)
	case !s.initialized():
		// Taken away before a machine is made, which would be given up in turn.
		return &anew{reset: true}, ""
	case s.workload.connected:
		return nil, fmt.Sprintf("Annotation %s asks to give up what etcd holds, but the API server of the Cluster answers: remove the annotation", name)
	case s.workload.settling > 0:
		return &anew{}, ""
	}
	step = &anew{reset: len(s.replicas) == 0}
	for _, r := range s.replicas {
		if !r.released() {
			step.giveUp = append(step.giveUp, r)
		}
	}
	return step, ""
}

// giveUp deletes Machines without drain and without asking etcd; they wait for nobody.
func (r *Reconciler) giveUp(ctx context.Context, s *snapshot, machines []*replica) error {
	var errs []error
	for _, of := range machines {
		if of.deleting() {
			errs = append(errs, r.unhook(ctx, of))
			continue
		}
		helper := patch.New(of.machine, r.Client)
		of.machine.Annotations[clusterv1.ExcludeNodeDrainingAnnotation] = ""
		of.machine.Annotations[clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation] = ""
		if err := helper.Patch(ctx, of.machine); err != nil {
			errs = append(errs, client.IgnoreNotFound(err))
			continue
		}
		// Our hook comes off when the deletion is seen, which is an event: before, it would be put back.
		errs = append(errs, r.remove(ctx, s, of))
	}
	return errors.Join(errs...)
}

// reset makes the control plane one that is to be initialized, and then takes the annotation away. Machines get other
// names than before: a snapshot that is restored knows Nodes of the old ones.
func (r *Reconciler) reset(ctx context.Context, s *snapshot, helper *patch.Helper) error {
	if s.initialized() {
		live, err := r.machines(ctx, r.Live, s.controlPlane, s.cluster)
		if err != nil || len(live) > 0 {
			return err
		}
		s.controlPlane.Status.Initialization.ControlPlaneInitialized = ptr.To(false)
		if err := helper.Patch(ctx, s.controlPlane); err != nil {
			return err
		}
		r.Recorder.Eventf(s.controlPlane, nil, corev1.EventTypeWarning, "BegunAnew", "BeginAnew",
			"What etcd of Cluster %s held is given up: a new machine initializes the control plane", s.cluster.Name)
	}
	annotations := s.controlPlane.Annotations
	delete(annotations, lifecycle.BeginAnewAnnotation)
	annotations[lifecycle.BegunAnewAnnotation] = s.now.UTC().Format(time.RFC3339)
	return helper.Patch(ctx, s.controlPlane)
}
