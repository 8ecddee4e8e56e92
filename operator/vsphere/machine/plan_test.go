package machine

import (
	"strings"
	"testing"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/millwright-dev/millwright/api/infrastructure/v1beta2"
	"github.com/millwright-dev/millwright/internal/vcenter"
)

var (
	noon    = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	decided = &infrav1.VirtualMachineCloneStatus{Name: "prod-1", Folder: "group-v3", Template: "vm-1", Mode: infrav1.FullClone}
)

func vmThatIs(power vcenter.PowerState) *vcenter.VM {
	return &vcenter.VM{Name: "prod-1", Ref: "vm-9", InstanceUUID: "a", BIOSUUID: "b", Power: power, BootTime: noon}
}

func taskTo(kind vcenter.TaskKind) *vcenter.Task {
	return &vcenter.Task{Kind: kind, What: "do it", State: vcenter.TaskRunning}
}

func TestTheNextStepOfAMachineThatIsWanted(t *testing.T) {
	for name, tc := range map[string]struct {
		snapshot snapshot
		action   action
		reason   string
		says     []string
	}{
		"nothing was done": {
			snapshot{}, prepare, infrav1.WaitingForCloneReason, nil,
		},
		"a clone was decided on and not started, as after a crash": {
			snapshot{clone: decided}, clone, infrav1.WaitingForCloneReason, nil,
		},
		"the clone runs": {
			snapshot{clone: decided, task: taskTo(vcenter.TaskClone)}, wait, infrav1.WaitingForCloneReason, []string{"do it"},
		},
		"vCenter is still making the machine": {
			snapshot{clone: decided, namesake: &vcenter.VM{Name: "prod-1"}}, wait, infrav1.WaitingForCloneReason, []string{"prod-1"},
		},
		"another machine has the name": {
			snapshot{clone: decided, namesake: vmThatIs(vcenter.PoweredOn)}, giveUp, infrav1.NameTakenReason, []string{"prod-1", "rename or remove"},
		},
		"the clone is there": {
			snapshot{clone: decided, vm: vmThatIs(vcenter.PoweredOff)}, reconfigure, infrav1.ConfiguringReason, nil,
		},
		"it is being configured": {
			snapshot{clone: decided, task: taskTo(vcenter.TaskConfigure)}, wait, infrav1.ConfiguringReason, nil,
		},
		"it is configured": {
			snapshot{clone: decided, vm: vmThatIs(vcenter.PoweredOff), configured: true}, powerOn, infrav1.PoweringOnReason, nil,
		},
		"it was suspended before it was provisioned": {
			snapshot{clone: decided, vm: vmThatIs(vcenter.Suspended), configured: true, providerID: "vsphere://b"}, powerOn, infrav1.PoweringOnReason, nil,
		},
		"it is being switched on": {
			snapshot{clone: decided, task: taskTo(vcenter.TaskPowerOn)}, wait, infrav1.PoweringOnReason, nil,
		},
		"its guest reports no address": {
			snapshot{vm: vmThatIs(vcenter.PoweredOn), configured: true, missing: []string{`no IPv4 address on network "VM Network"`}},
			wait, infrav1.WaitingForIPAllocationReason, []string{"since 2026-11-30T12:00:00Z", "VM Network", "VMware Tools"},
		},
		"it has its addresses": {
			snapshot{vm: vmThatIs(vcenter.PoweredOn), configured: true}, report, clusterv1.ProvisionedReason, nil,
		},
		"it was provisioned": {
			snapshot{vm: vmThatIs(vcenter.PoweredOn), provisioned: true}, report, clusterv1.ProvisionedReason, nil,
		},
		"it was provisioned and switched off": {
			snapshot{vm: vmThatIs(vcenter.PoweredOff), provisioned: true}, report, infrav1.VirtualMachinePoweredOffReason, []string{"powered off"},
		},
		"it was made once and is gone": {
			snapshot{clone: decided, providerID: "vsphere://b"}, report, infrav1.VirtualMachineNotFoundReason, []string{"vsphere://b", "delete the Machine"},
		},
		"a clone vanished before it was ever on": {
			snapshot{clone: decided, vmRef: "vm-9"}, clone, infrav1.WaitingForCloneReason, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := next(tc.snapshot)
			if got.action != tc.action || got.reason != tc.reason {
				t.Errorf("step is %q for %q; want %q for %q", got.action, got.reason, tc.action, tc.reason)
			}
			for _, says := range tc.says {
				if !strings.Contains(got.message, says) {
					t.Errorf("message %q does not say %q", got.message, says)
				}
			}
		})
	}
}

func TestTheNextStepOfAMachineThatIsDeleted(t *testing.T) {
	for name, tc := range map[string]struct {
		snapshot snapshot
		action   action
		again    time.Duration
	}{
		"its clone runs": {
			snapshot{clone: decided, taskRef: "task-1", task: taskTo(vcenter.TaskClone)}, wait, 0,
		},
		"vCenter is still making it": {
			snapshot{clone: decided, namesake: &vcenter.VM{Name: "prod-1"}}, wait, lookAgain,
		},
		"its clone may be one of those that run": {
			snapshot{clone: decided, clones: []string{"task-1"}}, awaitTasks, 0,
		},
		"another machine has its name": {
			snapshot{clone: decided, namesake: vmThatIs(vcenter.PoweredOn)}, finish, 0,
		},
		"it is gone": {
			snapshot{clone: decided, providerID: "vsphere://b", vmRef: "vm-9"}, finish, 0,
		},
		"it is off": {
			snapshot{vm: vmThatIs(vcenter.PoweredOff)}, destroy, 0,
		},
		"it is on": {
			snapshot{vm: vmThatIs(vcenter.PoweredOn)}, powerOff, 0,
		},
		"it is suspended, so that its guest cannot be asked": {
			snapshot{vm: vmThatIs(vcenter.Suspended), powerOffMode: infrav1.PowerOffSoft}, powerOff, 0,
		},
		"its guest is to be asked": {
			snapshot{vm: vmThatIs(vcenter.PoweredOn), powerOffMode: infrav1.PowerOffSoft}, shutDown, 0,
		},
		"its guest was asked, and is waited for for ever": {
			snapshot{vm: vmThatIs(vcenter.PoweredOn), powerOffMode: infrav1.PowerOffSoft, askedAt: noon, now: noon.Add(time.Hour)}, wait, 0,
		},
		"its guest was asked, and has time left": {
			snapshot{vm: vmThatIs(vcenter.PoweredOn), powerOffMode: infrav1.PowerOffTrySoft, askedAt: noon, timeout: 5 * time.Minute, now: noon.Add(time.Minute)},
			wait, 4 * time.Minute,
		},
		"its guest was asked, and the time is over": {
			snapshot{vm: vmThatIs(vcenter.PoweredOn), powerOffMode: infrav1.PowerOffTrySoft, askedAt: noon, timeout: 5 * time.Minute, now: noon.Add(5 * time.Minute)},
			powerOff, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := nextDeletion(tc.snapshot)
			if got.action != tc.action || got.again != tc.again {
				t.Errorf("step is %q, again in %s; want %q in %s", got.action, got.again, tc.action, tc.again)
			}
		})
	}
}

func TestOnlyAMachineThatVCenterNeverHeardOfGoesWithoutIt(t *testing.T) {
	for name, tc := range map[string]struct {
		snapshot snapshot
		want     bool
	}{
		"nothing was asked":      {snapshot{}, true},
		"a clone was decided on": {snapshot{clone: decided}, false},
		"it moved here":          {snapshot{providerID: "vsphere://b"}, false},
		"its machine was seen":   {snapshot{vmRef: "vm-9"}, false},
		"its clone was started":  {snapshot{taskRef: "task-1"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := untouched(tc.snapshot); got != tc.want {
				t.Errorf("untouched is %v", got)
			}
		})
	}
}
