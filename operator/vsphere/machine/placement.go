package machine

import (
	"fmt"
	"slices"
	"strings"

	infrav1 "github.com/millwright-dev/millwright/api/infrastructure/v1beta2"
	"github.com/millwright-dev/millwright/internal/vcenter"
)

// zone is a failure domain that a machine was assigned to.
type zone struct {
	deployment *infrav1.VSphereDeploymentZone
	domain     *infrav1.VSphereFailureDomain
}

// placed returns the clone specification with what the failure domain says in place of what the machine says. z is nil for
// a machine without a failure domain.
func placed(spec infrav1.VirtualMachineCloneSpec, z *zone) infrav1.VirtualMachineCloneSpec {
	if z == nil {
		return spec
	}
	topology, constraint := z.domain.Spec.Topology, z.deployment.Spec.PlacementConstraint
	override := func(field *string, value string) {
		if value != "" {
			*field = value
		}
	}
	override(&spec.Server, z.deployment.Spec.Server)
	override(&spec.Thumbprint, z.deployment.Spec.Thumbprint)
	override(&spec.Datacenter, topology.Datacenter)
	override(&spec.Datastore, topology.Datastore)
	override(&spec.Template, topology.Template)
	override(&spec.Folder, constraint.Folder)
	switch {
	case constraint.ResourcePool != "":
		spec.ResourcePool = constraint.ResourcePool
	case topology.ComputeCluster != "":
		spec.ResourcePool = topology.ComputeCluster + "/Resources"
	}
	spec.Network.Devices = slices.Clone(spec.Network.Devices)
	for i := range spec.Network.Devices {
		device := &spec.Network.Devices[i]
		if i < len(topology.Networks) {
			device.NetworkName = topology.Networks[i]
		}
		if i < len(topology.NetworkConfigurations) {
			configure(device, topology.NetworkConfigurations[i])
		}
	}
	return spec
}

func configure(device *infrav1.NetworkDeviceSpec, c infrav1.NetworkConfiguration) {
	device.NetworkName = c.NetworkName
	if c.DHCP4 != nil {
		device.DHCP4 = c.DHCP4
	}
	if c.DHCP6 != nil {
		device.DHCP6 = c.DHCP6
	}
	if len(c.Nameservers) > 0 {
		device.Nameservers = c.Nameservers
	}
	if len(c.SearchDomains) > 0 {
		device.SearchDomains = c.SearchDomains
	}
	if c.DHCP4Overrides != nil {
		device.DHCP4Overrides = c.DHCP4Overrides
	}
	if c.DHCP6Overrides != nil {
		device.DHCP6Overrides = c.DHCP6Overrides
	}
	if len(c.AddressesFromPools) > 0 {
		device.AddressesFromPools = c.AddressesFromPools
	}
}

// endpointFor returns the vCenter of a machine: the cluster's, or another one with the same credentials. The machine's
// thumbprint belongs to its server; for the cluster's server the cluster's counts.
func endpointFor(cluster vcenter.Endpoint, spec infrav1.VirtualMachineCloneSpec) vcenter.Endpoint {
	if spec.Server != "" && !strings.EqualFold(spec.Server, cluster.Server) {
		cluster.Server, cluster.Thumbprint = spec.Server, spec.Thumbprint
	}
	return cluster
}

// cloneRequest is the clone that a specification asks for. An empty mode means a linked clone where that is possible.
func cloneRequest(name, uid string, spec infrav1.VirtualMachineCloneSpec) vcenter.CloneRequest {
	r := vcenter.CloneRequest{
		Name: name, InstanceUUID: uid, Template: spec.Template,
		Linked: spec.CloneMode != infrav1.FullClone, Snapshot: spec.Snapshot,
		Datacenter: spec.Datacenter, Folder: spec.Folder, Datastore: spec.Datastore, ResourcePool: spec.ResourcePool,
		StoragePolicy: spec.StoragePolicyName, DiskGiB: spec.DiskGiB,
	}
	for _, device := range spec.Network.Devices {
		r.Networks = append(r.Networks, vcenter.CloneNetwork{Name: device.NetworkName, MAC: device.MACAddr})
	}
	return r
}

// unsupported names the fields of a specification that are accepted for compatibility and cannot be honoured: leaving
// them out silently would make another machine than the one asked for.
func unsupported(spec infrav1.VirtualMachineCloneSpec, z *zone) []string {
	var out []string
	for _, field := range []struct {
		name string
		set  bool
	}{
		{"additionalDisksGiB", len(spec.AdditionalDisksGiB) > 0},
		{"dataDisks", len(spec.DataDisks) > 0},
		{"hardwareVersion", spec.HardwareVersion != ""},
		{"pciDevices", len(spec.PciDevices) > 0},
		{"tagIDs", len(spec.TagIDs) > 0},
		{"the failure domain's hosts", z != nil && z.domain.Spec.Topology.Hosts != infrav1.FailureDomainHosts{}},
		{"the deployment zone's identityRef", z != nil && z.deployment.Spec.IdentityRef != nil},
	} {
		if field.set {
			out = append(out, field.name)
		}
	}
	for i, device := range spec.Network.Devices {
		if len(device.AddressesFromPools) > 0 {
			out = append(out, fmt.Sprintf("network.devices[%d].addressesFromPools", i))
		}
	}
	return out
}
