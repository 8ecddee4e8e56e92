package integration

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/millwright-dev/millwright/api/infrastructure/v1beta2"
	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/vcenter/vcentertest"
)

func TestAVSphereMachineLivesFromCloneToDestruction(t *testing.T) {
	bed := newVSphereBed(t)
	bed.provisioned(t)
	machine := bed.machine(t, "prod-1", func(m *infrav1.VSphereMachine) { m.Spec.PowerOffMode = infrav1.PowerOffTrySoft })
	wantState(t, machine, clusterv1.ReadyCondition, metav1.ConditionTrue, clusterv1.ReadyReason)

	vms, err := bed.vcenter.VMs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	vm, ok := vms["prod-1"]
	if !ok {
		t.Fatalf("vCenter holds %v; want prod-1", vms)
	}
	if machine.Spec.ProviderID != "vsphere://"+vm.Config.Uuid || !*machine.Status.Initialization.Provisioned {
		t.Errorf("provider id %q, provisioned %v; want that of BIOS UUID %s", machine.Spec.ProviderID, machine.Status.Initialization.Provisioned, vm.Config.Uuid)
	}
	if vm.Config.InstanceUuid != string(machine.UID) {
		t.Errorf("instance UUID is %s; want the object's UID %s", vm.Config.InstanceUuid, machine.UID)
	}
	if hw := vm.Config.Hardware; hw.NumCPU != 2 || hw.MemoryMB != 2048 {
		t.Errorf("%d CPUs and %d MiB; want 2 and 2048", hw.NumCPU, hw.MemoryMB)
	}
	if len(machine.Status.Addresses) != 3 || machine.Status.Addresses[0].Address != "prod-1" {
		t.Errorf("addresses are %v; want the host name and the address twice", machine.Status.Addresses)
	}
	mode := conditions.Get(machine, infrav1.CloneModeHonouredCondition)
	if mode == nil || mode.Reason != "NoSnapshot" {
		t.Errorf("clone mode: %+v; want it said that the template has no snapshot", mode)
	}

	secret := get(t, bed.secret)
	if len(secret.OwnerReferences) != 1 || len(secret.Finalizers) != 1 {
		t.Errorf("Secret has owners %v and finalizers %v; want the VSphereCluster's", secret.OwnerReferences, secret.Finalizers)
	}
	// The cluster and its credentials outlive the machine, whatever the order of the deletions.
	for _, obj := range []client.Object{bed.secret, bed.infra, machine} {
		if err := admin.Delete(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	wantGone(t, machine)
	bed.wantVMs(t)
	wantGone(t, bed.infra)
	wantGone(t, bed.secret)
	eventually(t, func() string {
		if n := bed.vcenter.Logins(t); n != 0 {
			return fmt.Sprintf("%d sessions are left in vCenter", n)
		}
		return ""
	})
}

func TestAMachineDeletedWhileItIsClonedLeavesNothingBehind(t *testing.T) {
	bed := newVSphereBed(t)
	bed.provisioned(t)
	var machines []*infrav1.VSphereMachine
	for i := range 8 {
		machines = append(machines, bed.machine(t, fmt.Sprintf("prod-%d", i)))
	}
	eventually(t, func() string {
		if get(t, machines[0]).Annotations["millwright.dev/clone"] == "" {
			return "no clone was decided on"
		}
		return ""
	})
	for _, machine := range machines {
		if err := admin.Delete(t.Context(), machine); err != nil {
			t.Fatal(err)
		}
	}
	for _, machine := range machines {
		wantGone(t, machine)
	}
	bed.wantVMs(t)
}

func TestAnOperatorThatDiesMakesNoSecondMachine(t *testing.T) {
	bed := newVSphereBed(t)
	bed.provisioned(t)
	var machines []*infrav1.VSphereMachine
	var names []string
	for i := range 6 {
		name := fmt.Sprintf("prod-%d", i)
		names = append(names, name)
		machines = append(machines, bed.machine(t, name))
	}
	for i := range 6 {
		// At some point of the i-th machine's way.
		eventually(t, func() string {
			if get(t, machines[i]).Annotations["millwright.dev/clone"] == "" {
				return "no clone was decided on"
			}
			return ""
		})
		bed.stop()
		bed.stop = startOperator(t, bed.namespace, "vsphere")
	}
	for _, machine := range machines {
		wantState(t, machine, clusterv1.ReadyCondition, metav1.ConditionTrue, clusterv1.ReadyReason)
	}
	bed.wantVMs(t, names...)
}

func TestAVirtualMachineDeletedBehindOurBackIsToldAndIsNoDeadlock(t *testing.T) {
	bed := newVSphereBed(t)
	bed.provisioned(t)
	machine := bed.machine(t, "prod-1")
	wantState(t, machine, clusterv1.ReadyCondition, metav1.ConditionTrue, clusterv1.ReadyReason)
	vm := bed.vcenter.VM(t, "prod-1")
	vcentertest.Wait(t)(vm.PowerOff(t.Context()))
	vcentertest.Wait(t)(vm.Destroy(t.Context()))
	update(t, machine, func() { machine.Annotations = map[string]string{"look": "again"} })
	wantState(t, machine, infrav1.VirtualMachineProvisionedCondition, metav1.ConditionFalse, infrav1.VirtualMachineNotFoundReason)
	if err := admin.Delete(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
	wantGone(t, machine)
}

func TestAVirtualMachineSwitchedOffBehindOurBackIsToldThroughItsNodeAndHealsWhenItIsOn(t *testing.T) {
	bed := newVSphereBed(t)
	bed.provisioned(t)
	machine := bed.machine(t, "prod-1")
	wantState(t, machine, clusterv1.ReadyCondition, metav1.ConditionTrue, clusterv1.ReadyReason)
	owner := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: bed.namespace, Name: machine.Name}}
	node := func(is metav1.ConditionStatus) {
		status(t, owner, func() {
			conditions.Set(owner, metav1.Condition{Type: clusterv1.MachineNodeReadyCondition, Status: is, Reason: "AsTheNodeSays"})
		})
	}
	node(metav1.ConditionTrue)

	vm := bed.vcenter.VM(t, "prod-1")
	vcentertest.Wait(t)(vm.PowerOff(t.Context()))
	node(metav1.ConditionUnknown)
	told := wantState(t, machine, clusterv1.ReadyCondition, metav1.ConditionFalse, clusterv1.NotReadyReason)
	if !strings.Contains(told.Message, "is powered off") || !strings.Contains(told.Message, "switch it on, or delete the Machine") {
		t.Errorf("told is %q, want what happened and what to do", told.Message)
	}
	if !*machine.Status.Initialization.Provisioned {
		t.Error("a machine that was provisioned is not any more")
	}

	// Nobody says that it is on again but vCenter.
	vcentertest.Wait(t)(vm.PowerOn(t.Context()))
	wantState(t, machine, clusterv1.ReadyCondition, metav1.ConditionTrue, clusterv1.ReadyReason)
}
