package machine

import (
	"context"
	"errors"
	"fmt"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	infrav1 "github.com/millwright-dev/millwright/api/infrastructure/v1beta2"
	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/vcenter"
)

// slotRetry bounds the wait for a clone slot. The session tells whoever is first in the queue; this is for the case that
// the one before was told and did not take the slot.
const slotRetry = 30 * time.Second

// act carries out a step. The result is when to look again without an event.
func (r *Reconciler) act(ctx context.Context, s *scope, seen snapshot, step step) (time.Duration, error) {
	key := s.key()
	if step.action != wait && step.action != report {
		log.FromContext(ctx).Info("Next step", "step", step.action, "vCenter", s.session.Server())
	}
	switch step.action {
	case wait:
		if seen.vm != nil {
			s.session.WatchVM(key, seen.vm)
		}
		return step.again, nil
	case prepare, clone:
		return r.startClone(ctx, s)
	case giveUp:
		// The next try looks at names anew.
		return 0, errors.Join(recordClone(s.machine, nil), problem(step.reason, "%s", step.message))
	case reconfigure:
		s.machine.Spec.ProviderID = providerIDPrefix + seen.vm.BIOSUUID
		return 0, s.session.Configure(ctx, key, seen.vm, *s.config)
	case powerOn:
		return 0, r.powerOn(ctx, s, seen.vm)
	case report:
		s.report(seen, step)
		return 0, nil
	case awaitTasks:
		for _, task := range seen.clones {
			s.session.Await(key, task)
		}
		return 0, nil
	case shutDown:
		return r.shutDown(ctx, s, seen)
	case powerOff:
		return 0, s.session.PowerOff(ctx, key, seen.vm)
	case destroy:
		if !seen.askedAt.IsZero() {
			conditions.Set(s.machine, conditions.True(infrav1.GuestSoftPowerOffSucceededCondition, "Succeeded", ""))
		}
		// The watch also tells of an end that somebody else brings about.
		s.session.WatchVM(key, seen.vm)
		return 0, s.session.Destroy(ctx, key, seen.vm)
	case finish:
		s.session.Forget(key)
		r.begun.forget(client.ObjectKeyFromObject(s.machine))
		controllerutil.RemoveFinalizer(s.machine, infrav1.MachineFinalizer)
		return 0, nil
	}
	return 0, fmt.Errorf("action %q is not known", step.action)
}

// startClone finds what the clone needs, stores that it will be made, and makes it. Whatever happens after the record is
// stored, a later look finds the virtual machine, or the task that makes it.
func (r *Reconciler) startClone(ctx context.Context, s *scope) (time.Duration, error) {
	m := s.machine
	name, err := vmName(m.Spec.NamingStrategy.Template, s.owner.Name)
	if err != nil {
		return 0, err
	}
	plan, err := s.session.PrepareClone(ctx, cloneRequest(name, string(m.UID), s.spec))
	if err != nil {
		return 0, err
	}
	if message := versionMismatch(s.owner.Spec.Version, plan.TemplateName, plan.Annotation); message != "" {
		return 0, problem(infrav1.TemplateVersionMismatchReason, "%s", message)
	}
	if s.told == infrav1.NameTakenReason {
		// vCenter would say so again, in a failed task at every try.
		switch namesake, err := s.session.VMNamed(ctx, plan.Folder, plan.Name); {
		case err == nil && namesake.Configured() && namesake.InstanceUUID != string(m.UID):
			return 0, problem(infrav1.NameTakenReason, "%s", nameTaken(plan.Name, m.Name))
		case err != nil && !errors.Is(err, vcenter.ErrVMNotFound):
			return 0, err
		}
	}
	setCloneMode(m, s.spec.CloneMode, plan, s.spec.DiskGiB)
	record := &infrav1.VirtualMachineCloneStatus{Name: plan.Name, Folder: plan.Folder, Template: plan.Template, Mode: infrav1.FullClone}
	if plan.Linked {
		record.Mode = infrav1.LinkedClone
	}
	if err := recordClone(m, record); err != nil {
		return 0, err
	}
	controllerutil.AddFinalizer(m, infrav1.MachineFinalizer)
	if s.zone != nil {
		m.Status.FailureDomain = s.zone.deployment.Name
	}
	setStep(m, step{reason: infrav1.WaitingForCloneReason, message: fmt.Sprintf("waiting for vCenter to clone template %q to %q", plan.TemplateName, plan.Name)})
	if _, err := s.helper.PatchButStatus(ctx, m); err != nil {
		return 0, err
	}
	r.begun.keep(m, time.Now())
	task, err := s.session.Clone(ctx, s.key(), plan)
	if errors.Is(err, vcenter.ErrNoCloneSlot) {
		setStep(m, step{reason: infrav1.WaitingForCloneSlotReason, message: fmt.Sprintf("vCenter %q runs as many clones as allowed: waiting for one to end", s.session.Server())})
		return slotRetry, nil
	}
	if err != nil {
		return 0, err
	}
	m.Status.TaskRef = task
	return 0, nil
}

// powerOn switches the virtual machine on, after it is stored that it was made: from then on it is never made again.
func (r *Reconciler) powerOn(ctx context.Context, s *scope, vm *vcenter.VM) error {
	s.machine.Spec.ProviderID = providerIDPrefix + vm.BIOSUUID
	if _, err := s.helper.PatchButStatus(ctx, s.machine); err != nil {
		return err
	}
	return s.session.PowerOn(ctx, s.key(), vm)
}

// report writes what there is to know of a virtual machine at rest, and stops watching it. One that is off is watched: it
// may be switched on again.
func (s *scope) report(seen snapshot, step step) {
	m := s.machine
	if seen.vm == nil {
		s.session.Forget(s.key())
		return
	}
	m.Spec.ProviderID = providerIDPrefix + seen.vm.BIOSUUID
	on := seen.vm.Power == vcenter.PoweredOn
	if on {
		virtual := s.cluster.Spec.ControlPlaneEndpoint.Host
		m.Status.Addresses, m.Status.Network = machineAddresses(seen.vm, virtual), networkStatus(seen.vm)
	}
	if step.reason == clusterv1.ProvisionedReason {
		m.Status.Initialization.Provisioned = new(true)
	}
	if on {
		s.session.UnwatchVM(s.key(), seen.vm)
	} else {
		s.session.WatchVM(s.key(), seen.vm)
	}
}

// shutDown asks the guest, or switches the machine off where it cannot be asked and need not be.
func (r *Reconciler) shutDown(ctx context.Context, s *scope, seen snapshot) (time.Duration, error) {
	s.session.WatchVM(s.key(), seen.vm)
	asked, err := s.session.ShutDownGuest(ctx, seen.vm)
	if err != nil {
		return 0, err
	}
	if asked {
		conditions.Set(s.machine, conditions.False(infrav1.GuestSoftPowerOffSucceededCondition, "InProgress", "the guest was asked to shut down"))
		if seen.powerOffMode == infrav1.PowerOffTrySoft {
			return seen.timeout, nil
		}
		return 0, nil
	}
	if seen.powerOffMode == infrav1.PowerOffSoft {
		return 0, problem(clusterv1.DeletingReason, "the guest of virtual machine %q cannot be asked to shut down, because VMware Tools do not run in it: "+
			"shut it down, or set powerOffMode to hard", seen.vm.Name)
	}
	conditions.Set(s.machine, conditions.False(infrav1.GuestSoftPowerOffSucceededCondition, "Failed", "VMware Tools do not run in the guest"))
	return 0, s.session.PowerOff(ctx, s.key(), seen.vm)
}
