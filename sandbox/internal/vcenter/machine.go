package vcenter

import (
	"slices"
	"strings"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// versionKey marks a template, and so its clones, with the Kubernetes version
// that is installed on its disk.
const versionKey = "sandbox.kubernetesVersion"

// toolsKey with the value "off" makes a machine whose guest has no VMware Tools.
const toolsKey = "sandbox.tools"

// Machine is a virtual machine as its guest sees it.
type Machine struct {
	Name string
	// UUID is the BIOS UUID, lower case, as Linux reports it.
	UUID              string
	KubernetesVersion string
	NumCPUs           int32
	MemoryMiB         int32
	// Connected says that it has a network card.
	Connected bool
	// Silent says that no VMware Tools run in its guest.
	Silent bool
	// GuestInfo are the guestinfo.* variables without the prefix.
	GuestInfo map[string]string
}

// machineOf reads a machine; the caller holds its lock.
func machineOf(vm *mo.VirtualMachine) Machine {
	m := Machine{Name: vm.Name, GuestInfo: map[string]string{}}
	if vm.Config == nil {
		return m
	}
	m.UUID = strings.ToLower(vm.Config.Uuid)
	m.NumCPUs, m.MemoryMiB = vm.Config.Hardware.NumCPU, vm.Config.Hardware.MemoryMB
	m.Connected = slices.ContainsFunc(vm.Config.Hardware.Device, func(d types.BaseVirtualDevice) bool {
		_, ok := d.(types.BaseVirtualEthernetCard)
		return ok
	})
	for _, option := range vm.Config.ExtraConfig {
		o := option.GetOptionValue()
		value, _ := o.Value.(string)
		switch o.Key {
		case versionKey:
			m.KubernetesVersion = value
		case toolsKey:
			m.Silent = value == "off"
		}
		if key, ok := strings.CutPrefix(o.Key, "guestinfo."); ok {
			m.GuestInfo[key] = value
		}
	}
	return m
}

// Tools is what VMware Tools in a guest report.
type Tools struct {
	Running           bool
	Address, HostName string
}

// Report sets what VMware Tools report of a machine; that it is gone is no error.
func (s *Server) Report(ref Reference, tools Tools) {
	ctx := s.context()
	vm, ok := ctx.Map.Get(ref).(*simulator.VirtualMachine)
	if !ok {
		return
	}
	ctx.WithLock(vm, func() {
		changes := []types.PropertyChange{
			{Name: "guest.ipAddress", Val: tools.Address},
			{Name: "summary.guest.ipAddress", Val: tools.Address},
			{Name: "guest.hostName", Val: tools.HostName},
			{Name: "summary.guest.hostName", Val: tools.HostName},
			{Name: "guest.net", Val: nics(vm.Guest.Net, tools.Address)},
		}
		running, status, state := types.VirtualMachineToolsRunningStatusGuestToolsNotRunning,
			types.VirtualMachineToolsStatusToolsNotRunning, types.VirtualMachineGuestStateNotRunning
		if tools.Running {
			running, status, state = types.VirtualMachineToolsRunningStatusGuestToolsRunning,
				types.VirtualMachineToolsStatusToolsOk, types.VirtualMachineGuestStateRunning
		}
		ctx.Update(vm, append(changes,
			types.PropertyChange{Name: "guest.toolsRunningStatus", Val: string(running)},
			types.PropertyChange{Name: "summary.guest.toolsRunningStatus", Val: string(running)},
			types.PropertyChange{Name: "guest.toolsStatus", Val: status},
			types.PropertyChange{Name: "summary.guest.toolsStatus", Val: status},
			types.PropertyChange{Name: "guest.guestState", Val: string(state)},
		))
	})
}

// nics returns the cards with the address on the first. Readers may hold the
// old slice.
func nics(old []types.GuestNicInfo, address string) []types.GuestNicInfo {
	cards := slices.Clone(old)
	for i := range cards {
		cards[i].IpAddress, cards[i].IpConfig, cards[i].Connected = nil, nil, address != ""
	}
	if len(cards) > 0 && address != "" {
		cards[0].IpAddress = []string{address}
		cards[0].IpConfig = &types.NetIpConfigInfo{IpAddress: []types.NetIpConfigInfoIpAddress{{
			IpAddress: address, PrefixLength: 16, State: string(types.NetIpConfigInfoIpAddressStatusPreferred),
		}}}
	}
	return cards
}
