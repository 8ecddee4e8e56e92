package vcenter

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vmware/govmomi/fault"
	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/millwright-dev/millwright/sandbox/internal/address"
)

// fixture is a vCenter and a user who has logged in.
type fixture struct {
	*Server
	ctx    context.Context
	finder *find.Finder
}

func start(t *testing.T) fixture {
	t.Helper()
	block, claim, err := address.Claim()
	if err != nil {
		t.Skipf("no loopback block to be had here: %v", err)
	}
	t.Cleanup(func() { claim.Close() })
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	s, err := Start(ctx, block.Host(), t.TempDir(), []string{"v1.37.2"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	client, err := s.client(ctx)
	if err != nil {
		t.Fatal(err)
	}
	finder := find.NewFinder(client.Client)
	datacenter, err := finder.Datacenter(ctx, Datacenter)
	if err != nil {
		t.Fatal(err)
	}
	finder.SetDatacenter(datacenter)
	return fixture{Server: s, ctx: ctx, finder: finder}
}

// clone clones the template by its bare name, as cluster templates name it.
func (f fixture) clone(t *testing.T, name string, extra ...types.BaseOptionValue) *object.VirtualMachine {
	t.Helper()
	template, err := f.finder.VirtualMachine(f.ctx, Template("v1.37.2"))
	if err != nil {
		t.Fatal(err)
	}
	folder, err := f.finder.Folder(f.ctx, Folder)
	if err != nil {
		t.Fatal(err)
	}
	pool, err := f.finder.ResourcePool(f.ctx, ResourcePool)
	if err != nil {
		t.Fatal(err)
	}
	ref := pool.Reference()
	task, err := template.Clone(f.ctx, folder, name, types.VirtualMachineCloneSpec{
		Location: types.VirtualMachineRelocateSpec{Pool: &ref},
		Config:   &types.VirtualMachineConfigSpec{NumCPUs: 4, ExtraConfig: extra},
	})
	if err != nil {
		t.Fatal(err)
	}
	info, err := task.WaitForResult(f.ctx)
	if err != nil {
		t.Fatal(err)
	}
	return object.NewVirtualMachine(template.Client(), info.Result.(types.ManagedObjectReference))
}

func (f fixture) wait(t *testing.T, task *object.Task, err error) {
	t.Helper()
	if err == nil {
		err = task.Wait(f.ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// expect returns the next event, which must be of that kind.
func (f fixture) expect(t *testing.T, kind Kind) Event {
	t.Helper()
	event, ok := f.Next()
	if !ok || event.Kind != kind {
		t.Fatalf("event %q, want %q", event.Kind, kind)
	}
	return event
}

func (f fixture) properties(t *testing.T, vm *object.VirtualMachine) mo.VirtualMachine {
	t.Helper()
	var got mo.VirtualMachine
	if err := vm.Properties(f.ctx, vm.Reference(), []string{"guest", "summary", "runtime.powerState"}, &got); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestTheLifeOfAMachineIsToldInOrder(t *testing.T) {
	f := start(t)
	vm := f.clone(t, "node-1", &types.OptionValue{Key: "guestinfo.userdata", Value: "I2Nsb3VkLWNvbmZpZw=="})
	f.expect(t, Created)

	found, err := object.NewSearchIndex(vm.Client()).FindByUuid(f.ctx, nil, vm.UUID(f.ctx), true, nil)
	if err != nil || found == nil || found.Reference() != vm.Reference() {
		t.Fatalf("found by UUID: %v, error %v, want %s", found, err, vm.Reference())
	}
	task, err := vm.PowerOn(f.ctx)
	f.wait(t, task, err)
	on := f.expect(t, PoweredOn)
	if on.Machine.UUID == "" {
		t.Error("the machine has no BIOS UUID")
	}
	want := Machine{
		Name: "node-1", UUID: on.Machine.UUID, KubernetesVersion: "v1.37.2", NumCPUs: 4, MemoryMiB: 2048, Connected: true,
		GuestInfo: map[string]string{"userdata": "I2Nsb3VkLWNvbmZpZw=="},
	}
	if diff := cmp.Diff(want, on.Machine); diff != "" {
		t.Errorf("machine (-want +got):\n%s", diff)
	}

	task, err = vm.Reset(f.ctx)
	f.wait(t, task, err)
	f.expect(t, PoweredOff)
	f.expect(t, PoweredOn)
	task, err = vm.PowerOff(f.ctx)
	f.wait(t, task, err)
	f.expect(t, PoweredOff)
	task, err = vm.Destroy(f.ctx)
	f.wait(t, task, err)
	if gone := f.expect(t, Removed); gone.VM != vm.Reference() {
		t.Errorf("%s was removed, want %s", gone.VM, vm.Reference())
	}
}

func TestAGuestIsAskedToShutDownAndOnlyThenIsThePowerOff(t *testing.T) {
	f := start(t)
	vm := f.clone(t, "node-1")
	task, err := vm.PowerOn(f.ctx)
	f.wait(t, task, err)
	f.expect(t, Created)
	f.expect(t, PoweredOn)

	if err := vm.ShutdownGuest(f.ctx); !fault.Is(err, &types.ToolsUnavailable{}) {
		t.Fatalf("shutdown without VMware Tools: %v, want ToolsUnavailable", err)
	}
	f.Report(vm.Reference(), Tools{Running: true, Address: "127.70.16.1", HostName: "node-1"})
	if got := f.properties(t, vm).Summary.Guest.IpAddress; got != "127.70.16.1" {
		t.Errorf("address %q, want the one that was reported", got)
	}
	if err := vm.ShutdownGuest(f.ctx); err != nil {
		t.Fatal(err)
	}
	asked := f.expect(t, ShutdownAsked)
	if got := f.properties(t, vm).Runtime.PowerState; got != types.VirtualMachinePowerStatePoweredOn {
		t.Errorf("%s while the guest still shuts down", got)
	}
	asked.Done()
	f.expect(t, PoweredOff)
	if got := f.properties(t, vm).Runtime.PowerState; got != types.VirtualMachinePowerStatePoweredOff {
		t.Errorf("%s after the guest has shut down", got)
	}
}

func TestANameThatComesAgainIsAnotherMachine(t *testing.T) {
	f := start(t)
	first := f.clone(t, "node-1")
	uuid := first.UUID(f.ctx)
	task, err := first.Destroy(f.ctx)
	f.wait(t, task, err)
	if again := f.clone(t, "node-1").UUID(f.ctx); again == uuid {
		t.Errorf("the second node-1 has the BIOS UUID %s of the first", uuid)
	}
}

func TestAWrongPasswordIsRefused(t *testing.T) {
	f := start(t)
	f.Password = "wrong"
	if _, err := f.client(f.ctx); !fault.Is(err, &types.InvalidLogin{}) {
		t.Errorf("login with a wrong password: %v, want InvalidLogin", err)
	}
}

func TestTheTemplateCanBeClonedLinkedAndIsTheOnlyMachine(t *testing.T) {
	f := start(t)
	all, err := f.finder.VirtualMachineList(f.ctx, "/...")
	if err != nil || len(all) != 1 {
		t.Fatalf("machines %v, error %v, want the template alone", all, err)
	}
	var template mo.VirtualMachine
	if err := all[0].Properties(f.ctx, all[0].Reference(), []string{"config.template", "snapshot", "config.guestId"}, &template); err != nil {
		t.Fatal(err)
	}
	if !template.Config.Template || template.Snapshot == nil {
		t.Errorf("template %v, snapshot %v", template.Config.Template, template.Snapshot)
	}
}
