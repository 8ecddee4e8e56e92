package machine

import (
	"fmt"
	"net/netip"
	"slices"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/millwright-dev/millwright/api/infrastructure/v1beta2"
	"github.com/millwright-dev/millwright/internal/vcenter"
)

// machineAddresses lists the host name, and each address as internal and external as the vSphere cloud provider does for
// the Node. The control plane's virtual address, which one of its machines holds at a time, is left out.
func machineAddresses(vm *vcenter.VM, virtual string) []clusterv1.MachineAddress {
	out := []clusterv1.MachineAddress{{Type: clusterv1.MachineHostName, Address: vm.Name}}
	var found []string
	for _, nic := range vm.NICs {
		for _, address := range usable(nic.IPs) {
			if address != virtual && !slices.Contains(found, address) {
				found = append(found, address)
			}
		}
	}
	for _, kind := range []clusterv1.MachineAddressType{clusterv1.MachineInternalIP, clusterv1.MachineExternalIP} {
		for _, address := range found {
			out = append(out, clusterv1.MachineAddress{Type: kind, Address: address})
		}
	}
	return out
}

// usable drops link-local addresses, which every interface has.
func usable(addresses []string) []string {
	var out []string
	for _, address := range addresses {
		parsed, err := netip.ParseAddr(address)
		if err == nil && !parsed.IsLinkLocalUnicast() && !parsed.IsUnspecified() {
			out = append(out, address)
		}
	}
	return out
}

// missingAddresses says which addresses the guest has not reported, one entry a device.
func missingAddresses(devices []infrav1.NetworkDeviceSpec, vm *vcenter.VM) []string {
	var out []string
	for i, device := range devices {
		if isTrue(device.SkipIPAllocation) {
			continue
		}
		var four, six bool
		if i < len(vm.NICs) {
			for _, address := range usable(vm.NICs[i].IPs) {
				parsed := netip.MustParseAddr(address)
				four, six = four || parsed.Is4(), six || parsed.Is6()
			}
		}
		wantFour, wantSix := families(device)
		switch {
		case wantFour && !four:
			out = append(out, fmt.Sprintf("no IPv4 address on network %q", device.NetworkName))
		case wantSix && !six:
			out = append(out, fmt.Sprintf("no IPv6 address on network %q", device.NetworkName))
		case !wantFour && !wantSix && !four && !six:
			out = append(out, fmt.Sprintf("no address on network %q", device.NetworkName))
		}
	}
	return out
}

// networkStatus shows the devices in the status.
func networkStatus(vm *vcenter.VM) []infrav1.NetworkStatus {
	var out []infrav1.NetworkStatus
	for _, nic := range vm.NICs {
		connected := nic.Connected
		out = append(out, infrav1.NetworkStatus{
			Connected: &connected, IPAddrs: nic.IPs, MACAddr: nic.MAC, NetworkName: nic.Network,
		})
	}
	return out
}
