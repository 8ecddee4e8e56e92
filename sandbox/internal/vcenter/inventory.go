package vcenter

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/types"
)

// Names in the inventory: one datacenter with two clusters of three hosts.
const (
	Datacenter    = "sandbox-dc"
	Datastore     = "datastore-1"
	Network       = "workload-network"
	Folder        = "/" + Datacenter + "/vm/millwright"
	ResourcePool  = "/" + Datacenter + "/host/cluster-1/Resources/millwright"
	StoragePolicy = "vSAN Default Storage Policy" // one of the simulator's own

	poolName       = "millwright"
	folderName     = "millwright"
	templateFolder = "templates"
	clusters       = 2
	hosts          = 3
	datastores     = 2
	templateGiB    = 20
)

// Template is the name of the VM template of a Kubernetes version.
func Template(version string) string { return "ubuntu-2404-kube-" + version }

// populate makes the inventory.
func (s *Server) populate(ctx context.Context, dir string, kubernetesVersions []string) error {
	client, err := s.client(ctx)
	if err != nil {
		return err
	}
	defer client.Logout(ctx)
	b := &builder{client: client.Client}

	datacenter, err := object.NewRootFolder(client.Client).CreateDatacenter(ctx, Datacenter)
	if err != nil {
		return err
	}
	folders, err := datacenter.Folders(ctx)
	if err != nil {
		return err
	}
	if b.dvs, err = b.newSwitch(ctx, folders.NetworkFolder); err != nil {
		return err
	}
	for n := range clusters {
		if err := b.addCluster(ctx, folders.HostFolder, n+1); err != nil {
			return err
		}
	}
	for n := range datastores {
		if err := b.addDatastore(ctx, dir, fmt.Sprintf("datastore-%d", n+1)); err != nil {
			return err
		}
	}
	if _, err := folders.VmFolder.CreateFolder(ctx, folderName); err != nil {
		return err
	}
	templates, err := folders.VmFolder.CreateFolder(ctx, templateFolder)
	if err != nil {
		return err
	}
	for _, version := range kubernetesVersions {
		if err := s.addTemplate(ctx, b, templates, version); err != nil {
			return fmt.Errorf("template %s: %w", Template(version), err)
		}
	}
	return nil
}

// builder holds what later parts of the inventory need of the earlier.
type builder struct {
	client  *vim25.Client
	dvs     *object.DistributedVirtualSwitch
	network types.BaseVirtualDeviceBackingInfo
	hosts   []*object.HostSystem
	pool    *object.ResourcePool
}

// newSwitch makes a distributed switch with one port group.
func (b *builder) newSwitch(ctx context.Context, folder *object.Folder) (*object.DistributedVirtualSwitch, error) {
	task, err := folder.CreateDVS(ctx, types.DVSCreateSpec{
		ConfigSpec: &types.VMwareDVSConfigSpec{DVSConfigSpec: types.DVSConfigSpec{Name: "switch-1"}},
	})
	if err != nil {
		return nil, err
	}
	info, err := task.WaitForResult(ctx)
	if err != nil {
		return nil, err
	}
	dvs := object.NewDistributedVirtualSwitch(b.client, info.Result.(types.ManagedObjectReference))
	task, err = dvs.AddPortgroup(ctx, []types.DVPortgroupConfigSpec{{
		Name: Network, NumPorts: 128, Type: string(types.DistributedVirtualPortgroupPortgroupTypeEarlyBinding),
	}})
	if err != nil {
		return nil, err
	}
	if err := task.Wait(ctx); err != nil {
		return nil, err
	}
	// The task does not return the port group.
	found, err := object.NewSearchIndex(b.client).FindChild(ctx, folder, Network)
	if err != nil {
		return nil, err
	}
	b.network, err = object.NewDistributedVirtualPortgroup(b.client, found.Reference()).EthernetCardBackingInfo(ctx)
	return dvs, err
}

func (b *builder) addCluster(ctx context.Context, folder *object.Folder, number int) error {
	cluster, err := folder.CreateCluster(ctx, fmt.Sprintf("cluster-%d", number), types.ClusterConfigSpecEx{})
	if err != nil {
		return err
	}
	for n := range hosts {
		task, err := cluster.AddHost(ctx, types.HostConnectSpec{HostName: fmt.Sprintf("esx-%d-%d", number, n+1)}, true, nil, nil)
		if err != nil {
			return err
		}
		info, err := task.WaitForResult(ctx)
		if err != nil {
			return err
		}
		host := object.NewHostSystem(b.client, info.Result.(types.ManagedObjectReference))
		if err := b.connect(ctx, host); err != nil {
			return err
		}
		b.hosts = append(b.hosts, host)
	}
	root, err := cluster.ResourcePool(ctx)
	if err != nil {
		return err
	}
	pool, err := root.Create(ctx, poolName, types.DefaultResourceConfigSpec())
	if err == nil && b.pool == nil {
		b.pool = pool
	}
	return err
}

// connect makes a host a member of the switch.
func (b *builder) connect(ctx context.Context, host *object.HostSystem) error {
	task, err := b.dvs.Reconfigure(ctx, &types.DVSConfigSpec{
		Host: []types.DistributedVirtualSwitchHostMemberConfigSpec{{
			Operation: string(types.ConfigSpecOperationAdd), Host: host.Reference(),
		}},
	})
	if err != nil {
		return err
	}
	return task.Wait(ctx)
}

// addDatastore makes a folder on disk a datastore of all hosts.
func (b *builder) addDatastore(ctx context.Context, dir, name string) error {
	folder := filepath.Join(dir, name)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	for _, host := range b.hosts {
		system, err := host.ConfigManager().DatastoreSystem(ctx)
		if err != nil {
			return err
		}
		if _, err := system.CreateLocalDatastore(ctx, name, folder); err != nil {
			return err
		}
	}
	return nil
}

// addTemplate makes a VM template with a snapshot, so that it can be cloned
// linked.
func (s *Server) addTemplate(ctx context.Context, b *builder, folder *object.Folder, version string) error {
	devices, err := hardware(b.network, version)
	if err != nil {
		return err
	}
	task, err := folder.CreateVM(ctx, types.VirtualMachineConfigSpec{
		Name:         Template(version),
		GuestId:      string(types.VirtualMachineGuestOsIdentifierUbuntu64Guest),
		NumCPUs:      2,
		MemoryMB:     2048,
		Files:        &types.VirtualMachineFileInfo{VmPathName: fmt.Sprintf("[%s]", Datastore)},
		DeviceChange: devices,
		ExtraConfig:  []types.BaseOptionValue{&types.OptionValue{Key: versionKey, Value: version}},
	}, b.pool, b.hosts[0])
	if err != nil {
		return err
	}
	info, err := task.WaitForResult(ctx)
	if err != nil {
		return err
	}
	vm := object.NewVirtualMachine(b.client, info.Result.(types.ManagedObjectReference))
	if task, err = vm.CreateSnapshot(ctx, "base", "as installed", false, false); err != nil {
		return err
	}
	if err := task.Wait(ctx); err != nil {
		return err
	}
	return vm.MarkAsTemplate(ctx)
}

// hardware is a disk and a network card.
func hardware(network types.BaseVirtualDeviceBackingInfo, version string) ([]types.BaseVirtualDeviceConfigSpec, error) {
	var devices object.VirtualDeviceList
	scsi, err := devices.CreateSCSIController("pvscsi")
	if err != nil {
		return nil, err
	}
	disk := devices.CreateDisk(scsi.(types.BaseVirtualController), types.ManagedObjectReference{},
		fmt.Sprintf("[%s] %s", Datastore, path.Join(Template(version), "disk1.vmdk")))
	disk.CapacityInKB = templateGiB << 20
	disk.CapacityInBytes = templateGiB << 30
	card, err := devices.CreateEthernetCard("vmxnet3", network)
	if err != nil {
		return nil, err
	}
	return append(devices, scsi, disk, card).ConfigSpec(types.VirtualDeviceConfigSpecOperationAdd)
}
