package v1beta2

// NetworkSpec is the network configuration of a virtual machine.
type NetworkSpec struct {
	// devices are the network devices, in the order in which the guest sees them.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	Devices []NetworkDeviceSpec `json:"devices,omitempty"`

	// routes are static routes of the guest.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=512
	Routes []NetworkRouteSpec `json:"routes,omitempty"`
}

// NetworkDeviceSpec is one network device.
type NetworkDeviceSpec struct {
	// networkName is the network that the device is connected to.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	NetworkName string `json:"networkName,omitempty"`

	// deviceName is the name of the device in the guest; eth0, eth1 and so on when empty.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	DeviceName string `json:"deviceName,omitempty"`

	// dhcp4 asks for an IPv4 address by DHCP.
	// +optional
	DHCP4 *bool `json:"dhcp4,omitempty"`

	// dhcp6 asks for an IPv6 address by DHCP.
	// +optional
	DHCP6 *bool `json:"dhcp6,omitempty"`

	// gateway4 is the IPv4 gateway.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Gateway4 string `json:"gateway4,omitempty"`

	// gateway6 is the IPv6 gateway.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Gateway6 string `json:"gateway6,omitempty"`

	// ipAddrs are static addresses in CIDR notation.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	IPAddrs []string `json:"ipAddrs,omitempty"`

	// mtu is the maximum transmission unit in bytes.
	// +optional
	MTU *int64 `json:"mtu,omitempty"`

	// macAddr is the MAC address; vCenter makes one when it is empty.
	// +optional
	// +kubebuilder:validation:MaxLength=23
	MACAddr string `json:"macAddr,omitempty"`

	// nameservers are addresses of DNS servers.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	Nameservers []string `json:"nameservers,omitempty"`

	// routes are static routes through this device.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=512
	Routes []NetworkRouteSpec `json:"routes,omitempty"`

	// searchDomains are DNS search domains.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	SearchDomains []string `json:"searchDomains,omitempty"`

	// addressesFromPools are pools of an IPAM provider to claim addresses from.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	AddressesFromPools []IPPoolReference `json:"addressesFromPools,omitempty"`

	// dhcp4Overrides tune the guest's DHCP client for IPv4.
	// +optional
	DHCP4Overrides *DHCPOverrides `json:"dhcp4Overrides,omitempty"`

	// dhcp6Overrides tune the guest's DHCP client for IPv6.
	// +optional
	DHCP6Overrides *DHCPOverrides `json:"dhcp6Overrides,omitempty"`

	// skipIPAllocation leaves the device without an address, and the machine does not wait for one.
	// +optional
	SkipIPAllocation *bool `json:"skipIPAllocation,omitempty"`
}

// IPPoolReference names a pool of addresses.
type IPPoolReference struct {
	// name of the pool.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// kind of the pool.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind,omitempty"`

	// apiGroup of the pool.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	APIGroup string `json:"apiGroup,omitempty"`
}

// DHCPOverrides tune the guest's DHCP client, in netplan's terms (https://netplan.io/reference#dhcp-overrides).
// Only what is set is sent.
type DHCPOverrides struct {
	// hostname is sent to the server instead of the machine's.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Hostname *string `json:"hostname,omitempty"`

	// routeMetric ranks the routes of the device; the lower wins.
	// +optional
	// +kubebuilder:validation:Minimum=0
	RouteMetric *int32 `json:"routeMetric,omitempty"`

	// sendHostname sends the host name to the server.
	// +optional
	SendHostname *bool `json:"sendHostname,omitempty"`

	// useDNS takes the server's DNS servers.
	// +optional
	UseDNS *bool `json:"useDNS,omitempty"`

	// useDomains is true, false or route.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	UseDomains *string `json:"useDomains,omitempty"`

	// useHostname takes the host name from the server.
	// +optional
	UseHostname *bool `json:"useHostname,omitempty"`

	// useMTU takes the MTU from the server.
	// +optional
	UseMTU *bool `json:"useMTU,omitempty"`

	// useNTP takes the time servers from the server.
	// +optional
	UseNTP *bool `json:"useNTP,omitempty"`

	// useRoutes takes the routes from the server.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	UseRoutes *string `json:"useRoutes,omitempty"`
}

// NetworkRouteSpec is a static route.
type NetworkRouteSpec struct {
	// to is the destination, an address or a CIDR.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	To string `json:"to,omitempty"`

	// via is the address of the next hop.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Via string `json:"via,omitempty"`

	// metric ranks the route; the lower wins.
	// +required
	// +kubebuilder:validation:Minimum=0
	Metric *int32 `json:"metric,omitempty"`
}

// NetworkStatus is what is known of one network device.
type NetworkStatus struct {
	// connected tells whether the device is connected to its network.
	// +optional
	Connected *bool `json:"connected,omitempty"`

	// ipAddrs are the addresses that VMware Tools reports.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	IPAddrs []string `json:"ipAddrs,omitempty"`

	// macAddr is the MAC address.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=17
	MACAddr string `json:"macAddr,omitempty"`

	// networkName is the name of the network.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	NetworkName string `json:"networkName,omitempty"`
}
