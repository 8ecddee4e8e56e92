package integration

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/millwright-dev/millwright/api/infrastructure/v1beta2"
	"github.com/millwright-dev/millwright/internal/vcenter/vcentertest"
)

func TestBadVSphereInputIsToldAndMendingItHeals(t *testing.T) {
	bed := newVSphereBed(t)
	bed.provisioned(t)
	for name, tc := range map[string]struct {
		spoil        func(*infrav1.VSphereMachine)
		mend         func(*infrav1.VSphereMachine)
		reason, says string
	}{
		"template": {
			func(m *infrav1.VSphereMachine) { m.Spec.Template = "debian" },
			func(m *infrav1.VSphereMachine) { m.Spec.Template = vcentertest.Template },
			infrav1.InventoryNotFoundReason, `template "debian" not found in datacenter "DC0"; templates there: "ubuntu-2404-kube-v1.37.2"`,
		},
		"network": {
			func(m *infrav1.VSphereMachine) { m.Spec.Network.Devices[0].NetworkName = "dmz" },
			func(m *infrav1.VSphereMachine) { m.Spec.Network.Devices[0].NetworkName = vcentertest.Network },
			infrav1.InventoryNotFoundReason, `network "dmz" not found`,
		},
		"datastore": {
			func(m *infrav1.VSphereMachine) { m.Spec.Datastore = "ssd" },
			func(m *infrav1.VSphereMachine) { m.Spec.Datastore = vcentertest.Datastore },
			infrav1.InventoryNotFoundReason, `datastore "ssd" not found`,
		},
		"folder": {
			func(m *infrav1.VSphereMachine) { m.Spec.Folder = "prod" },
			func(m *infrav1.VSphereMachine) { m.Spec.Folder = "" },
			infrav1.InventoryNotFoundReason, `folder "prod" not found`,
		},
		"policy": {
			func(m *infrav1.VSphereMachine) { m.Spec.StoragePolicyName = "gold" },
			func(m *infrav1.VSphereMachine) { m.Spec.StoragePolicyName = "vSAN Default Storage Policy" },
			infrav1.InventoryNotFoundReason, `storage policy "gold" not found`,
		},
		"field": {
			func(m *infrav1.VSphereMachine) { m.Spec.TagIDs = []string{"urn:vmomi:x"} },
			func(m *infrav1.VSphereMachine) { m.Spec.TagIDs = nil },
			infrav1.UnsupportedFieldReason, "tagIDs",
		},
	} {
		t.Run(name, func(t *testing.T) {
			machine := bed.machine(t, "bad-"+name, tc.spoil)
			told := wantState(t, machine, infrav1.VirtualMachineProvisionedCondition, metav1.ConditionFalse, tc.reason)
			if !strings.Contains(told.Message, tc.says) {
				t.Errorf("message is %q; want it to say %q", told.Message, tc.says)
			}
			update(t, machine, func() { tc.mend(machine) })
			wantState(t, machine, clusterv1.ReadyCondition, metav1.ConditionTrue, clusterv1.ReadyReason)
		})
	}
}

func TestATemplateOfAnotherKubernetesVersionIsRefused(t *testing.T) {
	bed := newVSphereBed(t)
	bed.provisioned(t)
	template := bed.vcenter.VM(t, vcentertest.Template)
	vcentertest.Wait(t)(template.Rename(t.Context(), "ubuntu-2404-kube-v1.36.3"))
	machine := bed.machine(t, "prod-1", func(m *infrav1.VSphereMachine) { m.Spec.Template = "ubuntu-2404-kube-v1.36.3" })
	told := wantState(t, machine, infrav1.VirtualMachineProvisionedCondition, metav1.ConditionFalse, infrav1.TemplateVersionMismatchReason)
	if !strings.Contains(told.Message, "v1.36.3") || !strings.Contains(told.Message, "v1.37.2") {
		t.Errorf("message is %q; want both versions", told.Message)
	}
	bed.wantVMs(t)
	// Mended in vCenter, of which no event tells: a retry finds it.
	vcentertest.Wait(t)(template.Rename(t.Context(), vcentertest.Template))
	update(t, machine, func() { machine.Spec.Template = vcentertest.Template })
	wantState(t, machine, clusterv1.ReadyCondition, metav1.ConditionTrue, clusterv1.ReadyReason)
}

func TestAGuestThatReportsNoAddressIsTold(t *testing.T) {
	bed := newVSphereBed(t)
	bed.provisioned(t)
	// Only the first device is given an address.
	machine := bed.machine(t, "prod-1", func(m *infrav1.VSphereMachine) {
		m.Spec.Network.Devices = append(m.Spec.Network.Devices, infrav1.NetworkDeviceSpec{NetworkName: "DC0_DVPG0", DHCP4: new(true)})
	})
	told := wantState(t, machine, infrav1.VirtualMachineProvisionedCondition, metav1.ConditionFalse, infrav1.WaitingForIPAllocationReason)
	for _, says := range []string{`no IPv4 address on network "DC0_DVPG0"`, " since 20", "VMware Tools"} {
		if !strings.Contains(told.Message, says) {
			t.Errorf("message is %q; want it to say %q", told.Message, says)
		}
	}
	update(t, machine, func() { machine.Spec.Network.Devices[1].SkipIPAllocation = new(true) })
	wantState(t, machine, clusterv1.ReadyCondition, metav1.ConditionTrue, clusterv1.ReadyReason)
}
