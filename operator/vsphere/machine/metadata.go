package machine

import (
	"fmt"
	"net/netip"

	"sigs.k8s.io/yaml"

	infrav1 "github.com/millwright-dev/millwright/api/infrastructure/v1beta2"
)

// metadata is what cloud-init reads as instance metadata: names, and the network in netplan's format, version 2.
type metadata struct {
	InstanceID    string        `json:"instance-id"`
	Hostname      string        `json:"hostname"`
	LocalHostname string        `json:"local-hostname"`
	WaitOnNetwork waitOnNetwork `json:"wait-on-network"`
	Network       netplan       `json:"network"`
}

type waitOnNetwork struct {
	IPv4 bool `json:"ipv4"`
	IPv6 bool `json:"ipv6"`
}

type netplan struct {
	Version   int                 `json:"version"`
	Ethernets map[string]ethernet `json:"ethernets,omitempty"`
}

type ethernet struct {
	Match          match          `json:"match"`
	SetName        string         `json:"set-name"`
	WakeOnLAN      bool           `json:"wakeonlan"`
	DHCP4          bool           `json:"dhcp4"`
	DHCP6          bool           `json:"dhcp6"`
	DHCP4Overrides *dhcpOverrides `json:"dhcp4-overrides,omitempty"`
	DHCP6Overrides *dhcpOverrides `json:"dhcp6-overrides,omitempty"`
	Addresses      []string       `json:"addresses,omitempty"`
	Gateway4       string         `json:"gateway4,omitempty"`
	Gateway6       string         `json:"gateway6,omitempty"`
	MTU            *int64         `json:"mtu,omitempty"`
	Routes         []route        `json:"routes,omitempty"`
	Nameservers    *nameservers   `json:"nameservers,omitempty"`
}

type match struct {
	MACAddress string `json:"macaddress"`
}

type dhcpOverrides struct {
	Hostname     *string `json:"hostname,omitempty"`
	RouteMetric  *int32  `json:"route-metric,omitempty"`
	SendHostname *bool   `json:"send-hostname,omitempty"`
	UseDNS       *bool   `json:"use-dns,omitempty"`
	UseDomains   *string `json:"use-domains,omitempty"`
	UseHostname  *bool   `json:"use-hostname,omitempty"`
	UseMTU       *bool   `json:"use-mtu,omitempty"`
	UseNTP       *bool   `json:"use-ntp,omitempty"`
	UseRoutes    *string `json:"use-routes,omitempty"`
}

type route struct {
	To     string `json:"to"`
	Via    string `json:"via"`
	Metric *int32 `json:"metric,omitempty"`
}

type nameservers struct {
	Addresses []string `json:"addresses,omitempty"`
	Search    []string `json:"search,omitempty"`
}

// renderMetadata writes the metadata of a virtual machine whose devices have the given MAC addresses, in order.
func renderMetadata(hostname string, network infrav1.NetworkSpec, macs []string) ([]byte, error) {
	m := metadata{
		InstanceID: hostname, Hostname: hostname, LocalHostname: hostname,
		Network: netplan{Version: 2, Ethernets: map[string]ethernet{}},
	}
	for i, device := range network.Devices {
		if i >= len(macs) {
			break
		}
		m.Network.Ethernets[fmt.Sprintf("id%d", i)] = ethernetOf(i, device, macs[i], network.Routes)
		if isTrue(device.SkipIPAllocation) {
			continue
		}
		four, six := families(device)
		m.WaitOnNetwork.IPv4 = m.WaitOnNetwork.IPv4 || four
		m.WaitOnNetwork.IPv6 = m.WaitOnNetwork.IPv6 || six
	}
	out, err := yaml.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("render the metadata of %q: %w", hostname, err)
	}
	return out, nil
}

func ethernetOf(i int, device infrav1.NetworkDeviceSpec, mac string, shared []infrav1.NetworkRouteSpec) ethernet {
	e := ethernet{
		Match: match{mac}, SetName: device.DeviceName, WakeOnLAN: true,
		DHCP4: isTrue(device.DHCP4), DHCP6: isTrue(device.DHCP6),
		Addresses: device.IPAddrs, Gateway4: device.Gateway4, Gateway6: device.Gateway6, MTU: device.MTU,
	}
	if e.SetName == "" {
		e.SetName = fmt.Sprintf("eth%d", i)
	}
	if e.DHCP4 {
		e.DHCP4Overrides = overrides(device.DHCP4Overrides)
	}
	if e.DHCP6 {
		e.DHCP6Overrides = overrides(device.DHCP6Overrides)
	}
	routes := device.Routes
	if i == 0 {
		// Netplan has routes of devices only: those of the machine go to the first.
		routes = append(append([]infrav1.NetworkRouteSpec{}, routes...), shared...)
	}
	for _, r := range routes {
		e.Routes = append(e.Routes, route(r))
	}
	if len(device.Nameservers)+len(device.SearchDomains) > 0 {
		e.Nameservers = &nameservers{Addresses: device.Nameservers, Search: device.SearchDomains}
	}
	return e
}

func overrides(o *infrav1.DHCPOverrides) *dhcpOverrides {
	if o == nil {
		return nil
	}
	converted := dhcpOverrides(*o)
	return &converted
}

// families tells which kinds of addresses a device is to get.
func families(device infrav1.NetworkDeviceSpec) (four, six bool) {
	four, six = isTrue(device.DHCP4), isTrue(device.DHCP6)
	for _, address := range device.IPAddrs {
		if prefix, err := netip.ParsePrefix(address); err == nil {
			four, six = four || prefix.Addr().Is4(), six || prefix.Addr().Is6()
		}
	}
	return four, six
}

func isTrue(b *bool) bool { return b != nil && *b }
