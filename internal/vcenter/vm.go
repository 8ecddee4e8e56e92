package vcenter

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// PowerState is that of a virtual machine.
type PowerState string

// Power states, as vCenter writes them.
const (
	PoweredOn  PowerState = "poweredOn"
	PoweredOff PowerState = "poweredOff"
	Suspended  PowerState = "suspended"
)

// NIC is a network device of a virtual machine.
type NIC struct {
	MAC string
	// Network is the name that the guest tools report, empty when they do not.
	Network   string
	Connected bool
	// IPs are the addresses that the guest tools report.
	IPs []string
}

// VM is a virtual machine as it is.
type VM struct {
	// Ref is the managed object id, Folder that of its folder.
	Ref, Folder string
	Name        string
	// BIOSUUID is what the guest reads as its system UUID; InstanceUUID is unique in vCenter. Both are lower case, and
	// empty while vCenter is still making the virtual machine.
	BIOSUUID, InstanceUUID string
	Power                  PowerState
	// BootTime is when it was powered on, zero when it is off.
	BootTime                time.Time
	NumCPUs, CoresPerSocket int32
	MemoryMiB               int64
	// DiskGiB is the size of the first disk, rounded down. Linked tells that the disk builds on a template's snapshot, in
	// which case it cannot grow.
	DiskGiB int32
	Linked  bool
	// ExtraConfig holds the advanced options.
	ExtraConfig map[string]string
	// NICs are in the order of the devices.
	NICs []NIC

	devices object.VirtualDeviceList
	// seen is the digest of what the watch reports.
	seen string
}

// Configured tells whether vCenter has got so far with the virtual machine that its configuration can be read.
func (vm *VM) Configured() bool { return vm.InstanceUUID != "" }

// Identity is what a virtual machine is found by; what is empty is not looked for.
type Identity struct {
	// Ref is the managed object id from the last time. It is tried first, and believed only if a UUID agrees.
	Ref                    string
	BIOSUUID, InstanceUUID string
}

var vmProperties = []string{
	"name", "parent", "config.uuid", "config.instanceUuid", "config.hardware", "config.extraConfig",
	"runtime.powerState", "summary.runtime.bootTime", "guest.ipAddress", "guest.net",
}

// FindVM returns the virtual machine of an identity; the error is ErrVMNotFound when there is none.
func (s *Session) FindVM(ctx context.Context, id Identity) (*VM, error) {
	if id.Ref != "" {
		vm, err := s.readVM(ctx, vmRef(id.Ref))
		if err == nil && (vm.InstanceUUID == strings.ToLower(id.InstanceUUID) || vm.BIOSUUID == strings.ToLower(id.BIOSUUID)) && vm.Configured() {
			return vm, nil
		}
		if err != nil && !IsNotFound(err) {
			return nil, err
		}
	}
	index := object.NewSearchIndex(s.vim())
	for _, search := range []struct {
		uuid     string
		instance bool
	}{{id.BIOSUUID, false}, {id.InstanceUUID, true}} {
		if search.uuid == "" {
			continue
		}
		ref, err := index.FindByUuid(ctx, nil, strings.ToLower(search.uuid), true, &search.instance)
		if err != nil {
			return nil, fmt.Errorf("find virtual machine by UUID %s: %w", search.uuid, err)
		}
		if ref == nil {
			continue
		}
		vm, err := s.readVM(ctx, ref.Reference())
		if IsNotFound(err) {
			continue
		}
		return vm, err
	}
	return nil, ErrVMNotFound
}

// VMNamed returns the virtual machine of a name in a folder, given by its managed object id; the error is ErrVMNotFound
// when there is none.
func (s *Session) VMNamed(ctx context.Context, folder, name string) (*VM, error) {
	parent := object.NewFolder(s.vim(), types.ManagedObjectReference{Type: "Folder", Value: folder})
	ref, err := object.NewSearchIndex(s.vim()).FindChild(ctx, parent, name)
	if IsNotFound(err) || (err == nil && (ref == nil || ref.Reference().Type != "VirtualMachine")) {
		return nil, ErrVMNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("find virtual machine %q: %w", name, err)
	}
	vm, err := s.readVM(ctx, ref.Reference())
	if IsNotFound(err) {
		return nil, ErrVMNotFound
	}
	return vm, err
}

// WatchVM tells owner of changes of power state and addresses from what vm shows on.
func (s *Session) WatchVM(owner string, vm *VM) { s.watch.add(vmRef(vm.Ref), owner, vm.seen) }

// UnwatchVM ends WatchVM.
func (s *Session) UnwatchVM(owner string, vm *VM) { s.watch.remove(vmRef(vm.Ref), owner) }

func (s *Session) readVM(ctx context.Context, ref types.ManagedObjectReference) (*VM, error) {
	var found mo.VirtualMachine
	if err := property.DefaultCollector(s.vim()).RetrieveOne(ctx, ref, vmProperties, &found); err != nil {
		return nil, fmt.Errorf("read virtual machine %s: %w", ref.Value, err)
	}
	return newVM(found), nil
}

func newVM(found mo.VirtualMachine) *VM {
	vm := &VM{Ref: found.Self.Value, Name: found.Name, Power: PowerState(found.Runtime.PowerState)}
	vm.seen = digest(found.Runtime.PowerState, "", nil)
	if guest := found.Guest; guest != nil {
		vm.seen = digest(found.Runtime.PowerState, guest.IpAddress, guest.Net)
	}
	if found.Parent != nil {
		vm.Folder = found.Parent.Value
	}
	if boot := found.Summary.Runtime.BootTime; boot != nil {
		vm.BootTime = *boot
	}
	config := found.Config
	if config == nil {
		return vm
	}
	vm.BIOSUUID, vm.InstanceUUID = strings.ToLower(config.Uuid), strings.ToLower(config.InstanceUuid)
	vm.NumCPUs, vm.MemoryMiB = config.Hardware.NumCPU, int64(config.Hardware.MemoryMB)
	if cores := config.Hardware.NumCoresPerSocket; cores != nil {
		vm.CoresPerSocket = *cores
	}
	vm.ExtraConfig = map[string]string{}
	for _, option := range config.ExtraConfig {
		if value, ok := option.GetOptionValue().Value.(string); ok {
			vm.ExtraConfig[option.GetOptionValue().Key] = value
		}
	}
	vm.devices = config.Hardware.Device
	if disk := firstDisk(vm.devices); disk != nil {
		vm.DiskGiB = int32(disk.CapacityInKB / kibPerGiB)
		backing, ok := disk.Backing.(*types.VirtualDiskFlatVer2BackingInfo)
		vm.Linked = ok && backing.Parent != nil
	}
	vm.NICs = nicsOf(vm.devices, found.Guest)
	return vm
}

// nicsOf joins the devices with what the guest tools report of them. Interfaces that are no devices, such as bridges of
// containers, are left out.
func nicsOf(devices object.VirtualDeviceList, guest *types.GuestInfo) []NIC {
	var out []NIC
	reported := false
	for _, device := range devices.SelectByType((*types.VirtualEthernetCard)(nil)) {
		card := device.(types.BaseVirtualEthernetCard).GetVirtualEthernetCard()
		nic := NIC{MAC: strings.ToLower(card.MacAddress)}
		if card.Connectable != nil {
			nic.Connected = card.Connectable.Connected
		}
		if guest != nil {
			for _, info := range guest.Net {
				if strings.EqualFold(info.MacAddress, card.MacAddress) {
					nic.Network = info.Network
					nic.IPs = append(nic.IPs, info.IpAddress...)
					reported = reported || len(info.IpAddress) > 0
				}
			}
		}
		out = append(out, nic)
	}
	// Old guest tools report one address and nothing of devices.
	if !reported && guest != nil && guest.IpAddress != "" && len(out) > 0 {
		out[0].IPs = []string{guest.IpAddress}
	}
	return out
}

const kibPerGiB = 1024 * 1024

func firstDisk(devices object.VirtualDeviceList) *types.VirtualDisk {
	disks := devices.SelectByType((*types.VirtualDisk)(nil))
	if len(disks) == 0 {
		return nil
	}
	return disks[0].(*types.VirtualDisk)
}
