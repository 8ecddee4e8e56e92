package vcenter

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vmware/govmomi/object"

	"github.com/millwright-dev/millwright/internal/vcenter/vcentertest"
)

func TestAVirtualMachineLivesFromCloneToDestruction(t *testing.T) {
	v := vcentertest.Start(t)
	pool, changes := newTestPool(t, Options{})
	s := newTestSession(t, v, pool)

	vm := cloned(t, s, "default/a1", request("a1"))
	if vm.Power != PoweredOff || len(vm.NICs) != 1 || vm.NICs[0].MAC == "" || vm.BIOSUUID == "" {
		t.Fatalf("clone is %+v; want it off, with one network device and a BIOS UUID", vm)
	}

	config := Config{NumCPUs: 4, MemoryMiB: 2048, CoresPerSocket: new(int32(2)), DiskGiB: 25, ExtraConfig: map[string]string{
		"guestinfo.userdata": "dXNlcg==", "guestinfo.userdata.encoding": "base64",
	}}
	if !config.Differs(vm) {
		t.Fatal("a fresh clone needs no configuration; want it to")
	}
	if err := s.Configure(t.Context(), "default/a1", vm, config); err != nil {
		t.Fatal(err)
	}
	if task := ended(t, s, "default/a1"); task.Err != nil {
		t.Fatal(task.Err)
	}
	vm = read(t, s, vm)
	if config.Differs(vm) {
		t.Errorf("after configuration the machine is %+v, which still differs from %+v", vm, config)
	}

	if err := s.PowerOn(t.Context(), "default/a1", vm); err != nil {
		t.Fatal(err)
	}
	ended(t, s, "default/a1")
	vm = read(t, s, vm)
	if vm.Power != PoweredOn || vm.BootTime.IsZero() {
		t.Errorf("power is %q, boot time %v; want it on since some time", vm.Power, vm.BootTime)
	}

	s.WatchVM("default/a1", vm)
	drain(changes)
	if err := v.SetGuestIP(t.Context(), vmRef(vm.Ref), "127.9.9.9"); err != nil {
		t.Fatal(err)
	}
	if owner := <-changes; owner != "default/a1" {
		t.Errorf("change reported for %q", owner)
	}
	vm = read(t, s, vm)
	if diff := cmp.Diff([]string{"127.9.9.9"}, vm.NICs[0].IPs); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}

	if err := s.PowerOff(t.Context(), "default/a1", vm); err != nil {
		t.Fatal(err)
	}
	ended(t, s, "default/a1")
	for range 2 { // The second time there is nothing to destroy.
		if err := s.Destroy(t.Context(), "default/a1", vm); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the machine is destroyed", func() bool {
			_, err := s.FindVM(t.Context(), Identity{Ref: vm.Ref, BIOSUUID: vm.BIOSUUID, InstanceUUID: vm.InstanceUUID})
			return errors.Is(err, ErrVMNotFound)
		})
	}
	if left, err := v.VMs(t.Context()); err != nil || len(left) != 0 {
		t.Errorf("vCenter holds %v, %v; want nothing", left, err)
	}
}

func TestACloneIsFoundAgainAfterACrash(t *testing.T) {
	v := vcentertest.Start(t)
	pool, _ := newTestPool(t, Options{})
	first := newTestSession(t, v, pool)
	plan, err := first.PrepareClone(t.Context(), request("b1"))
	if err != nil {
		t.Fatal(err)
	}
	ref, err := first.Clone(t.Context(), "default/b1", plan)
	if err != nil {
		t.Fatal(err)
	}
	pool.Close() // The process dies here.

	again, _ := newTestPool(t, Options{})
	second := newTestSession(t, v, again)
	task, err := second.ResumeClone(t.Context(), "default/b1", ref, "clone")
	if err != nil || task == nil {
		t.Fatalf("ResumeClone: %v, %v", task, err)
	}
	if task := ended(t, second, "default/b1"); task.Err != nil {
		t.Fatal(task.Err)
	}
	vm, err := second.FindVM(t.Context(), Identity{InstanceUUID: request("b1").InstanceUUID})
	if err != nil {
		t.Fatal(err)
	}
	named, err := second.VMNamed(t.Context(), plan.Folder, "b1")
	if err != nil || named.Ref != vm.Ref {
		t.Errorf("by name: %+v, %v; want %s", named, err, vm.Ref)
	}

	// A second clone, as without the record of the first, makes no second machine.
	if _, err := second.Clone(t.Context(), "default/b1", plan); err != nil {
		t.Fatal(err)
	}
	if task := ended(t, second, "default/b1"); !IsNameTaken(task.Err) {
		t.Errorf("second clone ended with %v; want that the name is taken", task.Err)
	}
	if task, err := second.ResumeClone(t.Context(), "default/b1", "task-999999", "clone"); task != nil || err != nil {
		t.Errorf("a task that vCenter does not know gives %v, %v; want neither", task, err)
	}
}

func TestALinkedCloneWithoutSnapshotBecomesAFullOne(t *testing.T) {
	v := vcentertest.Start(t)
	pool, _ := newTestPool(t, Options{})
	s := newTestSession(t, v, pool)
	r := request("c1")
	r.Linked = true
	plan, err := s.PrepareClone(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if plan.Linked {
		t.Error("the plan is a linked clone of a template without snapshots")
	}

	vcentertest.Wait(t)(v.VM(t, r.Template).CreateSnapshot(t.Context(), "base", "", false, false))
	if plan, err = s.PrepareClone(t.Context(), r); err != nil || !plan.Linked {
		t.Errorf("with a snapshot: linked %v, %v; want a linked clone", plan.Linked, err)
	}
}

func TestTheDiskOfATemplateCannotShrink(t *testing.T) {
	v := vcentertest.Start(t)
	pool, _ := newTestPool(t, Options{})
	s := newTestSession(t, v, pool)
	vm := cloned(t, s, "default/d1", request("d1"))
	if err := s.Configure(t.Context(), "default/d1", vm, Config{DiskGiB: 30}); err != nil {
		t.Fatal(err)
	}
	ended(t, s, "default/d1")
	if err := object.NewVirtualMachine(v.Admin.Client, vmRef(vm.Ref)).MarkAsTemplate(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := request("d2")
	r.Template, r.DiskGiB = "d1", 20
	_, err := s.PrepareClone(t.Context(), r)
	var invalid *InvalidError
	if !errors.As(err, &invalid) || invalid.Field != "diskGiB" {
		t.Errorf("error is %v; want that diskGiB is invalid", err)
	}
}

func TestClonesBeyondTheLimitWaitForASlot(t *testing.T) {
	v := vcentertest.Start(t)
	pool, changes := newTestPool(t, Options{MaxClones: 1})
	s := newTestSession(t, v, pool)
	one, err := s.PrepareClone(t.Context(), request("e1"))
	if err != nil {
		t.Fatal(err)
	}
	two, err := s.PrepareClone(t.Context(), request("e2"))
	if err != nil {
		t.Fatal(err)
	}
	if !s.tasks.acquireSlot("default/other") {
		t.Fatal("no slot in an idle session")
	}
	for _, owner := range []string{"default/e1", "default/e2"} {
		if _, err := s.Clone(t.Context(), owner, one); !errors.Is(err, ErrNoCloneSlot) {
			t.Fatalf("clone beside another: %v; want ErrNoCloneSlot", err)
		}
	}
	s.giveBackSlot()
	if owner := <-changes; owner != "default/e1" {
		t.Errorf("told %q of the free slot; want the first in the queue", owner)
	}
	if _, err := s.Clone(t.Context(), "default/e1", one); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end of the first clone lets the second in", func() bool {
		_, err := s.Clone(t.Context(), "default/e2", two)
		return err == nil
	})
}

func read(t *testing.T, s *Session, vm *VM) *VM {
	t.Helper()
	now, err := s.FindVM(t.Context(), Identity{Ref: vm.Ref, InstanceUUID: vm.InstanceUUID})
	if err != nil {
		t.Fatal(err)
	}
	return now
}

func drain(changes <-chan string) {
	for {
		select {
		case <-changes:
		default:
			return
		}
	}
}
