package machine

import (
	"fmt"
	"strings"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/millwright-dev/millwright/api/infrastructure/v1beta2"
	"github.com/millwright-dev/millwright/internal/vcenter"
)

// snapshot is what a decision about a VSphereMachine needs to know.
type snapshot struct {
	now time.Time
	// name is the name of the VSphereMachine, for messages.
	name string

	// clone is the record of the clone that was decided on, nil before that; taskRef and vmRef are what came of it.
	clone          *infrav1.VirtualMachineCloneStatus
	taskRef, vmRef string
	providerID     string
	provisioned    bool

	// task is the task that runs or has ended in vCenter, nil for none.
	task *vcenter.Task
	// vm is the virtual machine, nil when there is none. namesake is one that has its name and another identity.
	vm, namesake *vcenter.VM
	// clones are clone tasks of the template that are not over. They are looked for only when it is not known whether a
	// clone was started.
	clones []string

	// configured tells whether vm has the configuration that it is to have.
	configured bool
	// missing are the addresses that the guest has not reported.
	missing []string

	powerOffMode infrav1.PowerOffMode
	// askedAt is when the guest was asked to shut down, zero when it was not; timeout is how long trySoft waits from then.
	askedAt time.Time
	timeout time.Duration
}

// action is what is to be done next.
type action string

const (
	wait        action = "wait"
	prepare     action = "prepare a clone"
	clone       action = "clone"
	giveUp      action = "give the clone up"
	reconfigure action = "configure"
	powerOn     action = "power on"
	report      action = "report"
	awaitTasks  action = "await the template's clones"
	shutDown    action = "shut the guest down"
	powerOff    action = "power off"
	destroy     action = "destroy"
	finish      action = "finish"
)

// step is a decision: an action, and what the condition VirtualMachineProvisioned says meanwhile.
type step struct {
	action          action
	reason, message string
	// again is when to look again without an event; zero for never.
	again time.Duration
}

// lookAgain is how long a virtual machine that vCenter is still making is left alone: its configuration appears without
// an event that could be waited for.
const lookAgain = 5 * time.Second

// next decides about a machine that is wanted.
func next(s snapshot) step {
	switch {
	case s.task != nil && s.task.State == vcenter.TaskRunning:
		return step{action: wait, reason: runningReason(s.task), message: "waiting for vCenter to " + s.task.What}
	case s.vm == nil:
		return nextWithoutVM(s)
	case s.provisioned && s.vm.Power != vcenter.PoweredOn:
		return step{action: report, reason: infrav1.VirtualMachinePoweredOffReason, message: fmt.Sprintf(
			"virtual machine %q is %s and is not switched on again by itself: switch it on, or delete the Machine to replace it", s.vm.Name, power(s.vm))}
	case s.provisioned:
		return step{action: report, reason: clusterv1.ProvisionedReason}
	case s.vm.Power != vcenter.PoweredOn && !s.configured:
		return step{action: reconfigure, reason: infrav1.ConfiguringReason, message: fmt.Sprintf("configuring virtual machine %q", s.vm.Name)}
	case s.vm.Power != vcenter.PoweredOn:
		return step{action: powerOn, reason: infrav1.PoweringOnReason, message: fmt.Sprintf("switching on virtual machine %q", s.vm.Name)}
	case len(s.missing) > 0:
		return step{action: wait, reason: infrav1.WaitingForIPAllocationReason, message: noAddress(s)}
	default:
		return step{action: report, reason: clusterv1.ProvisionedReason}
	}
}

func nextWithoutVM(s snapshot) step {
	switch {
	case s.providerID != "":
		return step{action: report, reason: infrav1.VirtualMachineNotFoundReason, message: fmt.Sprintf(
			"virtual machine with provider id %q is gone from vCenter: delete the Machine to replace it", s.providerID)}
	case s.clone == nil:
		return step{action: prepare, reason: infrav1.WaitingForCloneReason}
	case s.namesake != nil && !s.namesake.Configured():
		return step{action: wait, reason: infrav1.WaitingForCloneReason, again: lookAgain,
			message: fmt.Sprintf("waiting for vCenter to finish making virtual machine %q", s.clone.Name)}
	case s.namesake != nil:
		return step{action: giveUp, reason: infrav1.NameTakenReason, message: nameTaken(s.clone.Name, s.name)}
	default:
		return step{action: clone, reason: infrav1.WaitingForCloneReason}
	}
}

func nameTaken(name, machine string) string {
	return fmt.Sprintf("the folder already has a virtual machine %q, which was not made for VSphereMachine %q: rename or remove it", name, machine)
}

func runningReason(task *vcenter.Task) string {
	switch task.Kind {
	case vcenter.TaskConfigure:
		return infrav1.ConfiguringReason
	case vcenter.TaskPowerOn:
		return infrav1.PoweringOnReason
	default:
		return infrav1.WaitingForCloneReason
	}
}

func noAddress(s snapshot) string {
	since := ""
	if !s.vm.BootTime.IsZero() {
		since = " since " + s.vm.BootTime.UTC().Format(time.RFC3339)
	}
	return fmt.Sprintf("virtual machine %q is on%s, but its guest reports %s: check in its console that it boots, that VMware Tools "+
		"run in it, and that DHCP or the static configuration gives it an address", s.vm.Name, since, strings.Join(s.missing, " and "))
}

func power(vm *vcenter.VM) string {
	if vm.Power == vcenter.Suspended {
		return "suspended"
	}
	return "powered off"
}

// untouched tells that nothing was ever asked of vCenter for a machine.
func untouched(s snapshot) bool {
	return s.clone == nil && s.providerID == "" && s.taskRef == "" && s.vmRef == ""
}

// nextDeletion decides about a machine that is being deleted, from a look at vCenter.
func nextDeletion(s snapshot) step {
	switch {
	case s.task != nil && s.task.State == vcenter.TaskRunning:
		return deleting(wait, "waiting for vCenter to %s", s.task.What)
	case s.vm == nil && s.namesake != nil && !s.namesake.Configured():
		step := deleting(wait, "waiting for vCenter to finish making virtual machine %q, to destroy it", s.namesake.Name)
		step.again = lookAgain
		return step
	case s.vm == nil && len(s.clones) > 0:
		return deleting(awaitTasks, "waiting for %d clones of the template to end: one may be of this machine", len(s.clones))
	case s.vm == nil:
		return step{action: finish}
	case s.vm.Power == vcenter.PoweredOff:
		return deleting(destroy, "destroying virtual machine %q", s.vm.Name)
	case s.vm.Power == vcenter.PoweredOn && s.powerOffMode == infrav1.PowerOffSoft:
		return nextSoft(s)
	case s.vm.Power == vcenter.PoweredOn && s.powerOffMode == infrav1.PowerOffTrySoft:
		return nextTrySoft(s)
	default:
		return deleting(powerOff, "switching off virtual machine %q", s.vm.Name)
	}
}

func nextSoft(s snapshot) step {
	if s.askedAt.IsZero() {
		return deleting(shutDown, "asking the guest of virtual machine %q to shut down", s.vm.Name)
	}
	return deleting(wait, "waiting for the guest of virtual machine %q to shut down; powerOffMode hard would switch it off", s.vm.Name)
}

func nextTrySoft(s snapshot) step {
	if s.askedAt.IsZero() {
		return deleting(shutDown, "asking the guest of virtual machine %q to shut down", s.vm.Name)
	}
	left := s.askedAt.Add(s.timeout).Sub(s.now)
	if left <= 0 {
		return deleting(powerOff, "switching off virtual machine %q, whose guest did not shut down in %s", s.vm.Name, s.timeout)
	}
	step := deleting(wait, "waiting for the guest of virtual machine %q to shut down", s.vm.Name)
	step.again = left
	return step
}

func deleting(a action, format string, args ...any) step {
	return step{action: a, reason: clusterv1.DeletingReason, message: fmt.Sprintf(format, args...)}
}
