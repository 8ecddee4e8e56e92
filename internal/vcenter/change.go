package vcenter

import (
	"context"
	"fmt"

	"github.com/vmware/govmomi/fault"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"
)

// Config is how a virtual machine is to be; zero values leave things as they are.
type Config struct {
	NumCPUs        int32
	CoresPerSocket *int32
	MemoryMiB      int64
	// DiskGiB is the size of the first disk. Only growth is done.
	DiskGiB int32
	// ExtraConfig are advanced options; an empty value removes one.
	ExtraConfig map[string]string

	CPU, Memory                         Allocation
	NestedHV                            *bool
	FtEncryptionMode, MigrateEncryption string
}

// Allocation is a reservation, a limit and shares, in MHz or MiB.
type Allocation struct {
	Reservation, Limit *int64
	Shares             int32
}

// Differs tells whether vm is to be changed. Allocations and flags are not compared: they are written together with the
// advanced options, which are.
func (c Config) Differs(vm *VM) bool {
	for key, value := range c.ExtraConfig {
		if vm.ExtraConfig[key] != value {
			return true
		}
	}
	return c.NumCPUs != 0 && c.NumCPUs != vm.NumCPUs ||
		c.MemoryMiB != 0 && c.MemoryMiB != vm.MemoryMiB ||
		// 0 lets vCenter choose, and it then shows its choice.
		c.CoresPerSocket != nil && *c.CoresPerSocket != 0 && *c.CoresPerSocket != vm.CoresPerSocket ||
		c.DiskGiB > vm.DiskGiB
}

// configSpec writes c for vCenter. The specification may hold values that vm has already.
func configSpec(c Config, vm *VM) types.VirtualMachineConfigSpec {
	spec := types.VirtualMachineConfigSpec{
		NumCPUs: c.NumCPUs, NumCoresPerSocket: c.CoresPerSocket, MemoryMB: c.MemoryMiB,
		CpuAllocation: c.CPU.info(), MemoryAllocation: c.Memory.info(),
		// The CSI driver finds disks by their UUIDs in the guest.
		Flags:           &types.VirtualMachineFlagInfo{DiskUuidEnabled: types.NewBool(true)},
		NestedHVEnabled: c.NestedHV, FtEncryptionMode: c.FtEncryptionMode, MigrateEncryption: c.MigrateEncryption,
	}
	for key, value := range c.ExtraConfig {
		if vm.ExtraConfig[key] != value {
			spec.ExtraConfig = append(spec.ExtraConfig, &types.OptionValue{Key: key, Value: value})
		}
	}
	if disk := firstDisk(vm.devices); disk != nil && c.DiskGiB > vm.DiskGiB {
		grown := *disk
		grown.CapacityInKB = int64(c.DiskGiB) * kibPerGiB
		grown.CapacityInBytes = grown.CapacityInKB * 1024
		spec.DeviceChange = append(spec.DeviceChange, &types.VirtualDeviceConfigSpec{
			Device: &grown, Operation: types.VirtualDeviceConfigSpecOperationEdit,
		})
	}
	return spec
}

func (a Allocation) info() *types.ResourceAllocationInfo {
	if a.Reservation == nil && a.Limit == nil && a.Shares == 0 {
		return nil
	}
	info := &types.ResourceAllocationInfo{Reservation: a.Reservation, Limit: a.Limit}
	if a.Shares > 0 {
		info.Shares = &types.SharesInfo{Level: types.SharesLevelCustom, Shares: a.Shares}
	}
	return info
}

// Configure starts to make vm as c says. It must be off.
func (s *Session) Configure(ctx context.Context, owner string, vm *VM, c Config) error {
	what := fmt.Sprintf("configure virtual machine %q", vm.Name)
	res, err := methods.ReconfigVM_Task(ctx, s.vim(), &types.ReconfigVM_Task{This: vmRef(vm.Ref), Spec: configSpec(c, vm)})
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	s.started(owner, res.Returnval, TaskConfigure, what)
	return nil
}

// PowerOn starts to switch vm on.
func (s *Session) PowerOn(ctx context.Context, owner string, vm *VM) error {
	what := fmt.Sprintf("switch on virtual machine %q", vm.Name)
	res, err := methods.PowerOnVM_Task(ctx, s.vim(), &types.PowerOnVM_Task{This: vmRef(vm.Ref)})
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	s.started(owner, res.Returnval, TaskPowerOn, what)
	return nil
}

// PowerOff starts to switch vm off without asking the guest.
func (s *Session) PowerOff(ctx context.Context, owner string, vm *VM) error {
	what := fmt.Sprintf("switch off virtual machine %q", vm.Name)
	res, err := methods.PowerOffVM_Task(ctx, s.vim(), &types.PowerOffVM_Task{This: vmRef(vm.Ref)})
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	s.started(owner, res.Returnval, TaskPowerOff, what)
	return nil
}

// ShutDownGuest asks the guest of vm to shut down, and returns at once; WatchVM tells when it is off. The result is false
// when the guest cannot be asked, because its tools do not run.
func (s *Session) ShutDownGuest(ctx context.Context, vm *VM) (asked bool, err error) {
	_, err = methods.ShutdownGuest(ctx, s.vim(), &types.ShutdownGuest{This: vmRef(vm.Ref)})
	switch {
	case fault.Is(err, &types.ToolsUnavailable{}):
		return false, nil
	case err != nil && !fault.Is(err, &types.InvalidPowerState{}):
		return false, fmt.Errorf("ask the guest of virtual machine %q to shut down: %w", vm.Name, err)
	}
	return true, nil
}

// Destroy starts to delete vm with its disks. It must be off. One that is gone already is no error, and starts nothing.
func (s *Session) Destroy(ctx context.Context, owner string, vm *VM) error {
	what := fmt.Sprintf("destroy virtual machine %q", vm.Name)
	res, err := methods.Destroy_Task(ctx, s.vim(), &types.Destroy_Task{This: vmRef(vm.Ref)})
	if IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	s.started(owner, res.Returnval, TaskDestroy, what)
	return nil
}
