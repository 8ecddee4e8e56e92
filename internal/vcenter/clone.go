package vcenter

import (
	"context"
	"fmt"

	"github.com/vmware/govmomi/fault"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// CloneRequest is a clone in a user's names.
type CloneRequest struct {
	// Name of the virtual machine to make, InstanceUUID its identity.
	Name, InstanceUUID string
	Template           string
	// Linked asks for a clone on top of Snapshot, or of the template's current snapshot when that is empty.
	Linked   bool
	Snapshot string

	Datacenter, Folder, Datastore, ResourcePool, StoragePolicy string

	Networks []CloneNetwork
	// DiskGiB is the size that the first disk is to grow to; 0 for no wish.
	DiskGiB int32
}

// CloneNetwork is a network device to make.
type CloneNetwork struct {
	Name string
	// MAC is empty for one that vCenter makes.
	MAC string
}

// ClonePlan is a clone whose names have been found in the inventory.
type ClonePlan struct {
	Name string
	// Folder and Template are managed object ids.
	Folder, Template string
	// TemplateName and Annotation are the template's.
	TemplateName, Annotation string
	// Linked is how the clone will be made: a linked clone that was asked for needs a snapshot.
	Linked bool
	// TemplateDiskGiB is the size of the template's first disk, rounded up.
	TemplateDiskGiB int32

	spec types.VirtualMachineCloneSpec
}

// PrepareClone finds everything that a clone needs. It changes nothing. Its errors are NotFoundError, AmbiguousError and
// InvalidError where the request is at fault.
func (s *Session) PrepareClone(ctx context.Context, r CloneRequest) (*ClonePlan, error) {
	c := s.vim()
	inventory, err := newInventory(ctx, c, r.Datacenter)
	if err != nil {
		return nil, err
	}
	template, err := inventory.find(ctx, templates, r.Template)
	if err != nil {
		return nil, err
	}
	var source mo.VirtualMachine
	err = property.DefaultCollector(c).RetrieveOne(ctx, template,
		[]string{"name", "config.annotation", "config.hardware.device", "snapshot"}, &source)
	if err != nil {
		return nil, fmt.Errorf("read template %q: %w", r.Template, err)
	}
	if source.Config == nil {
		return nil, fmt.Errorf("template %q is not yet complete in vCenter", r.Template)
	}
	where, err := s.placement(ctx, inventory, r)
	if err != nil {
		return nil, err
	}
	snapshot, err := snapshotFor(r, source.Snapshot)
	if err != nil {
		return nil, err
	}
	var cards []types.BaseVirtualDevice
	for _, network := range r.Networks {
		card, err := inventory.card(ctx, network)
		if err != nil {
			return nil, err
		}
		cards = append(cards, card)
	}
	plan := &ClonePlan{
		Name: r.Name, Folder: where.folder.Value, Template: template.Value,
		TemplateName: source.Name, Annotation: source.Config.Annotation, Linked: snapshot != nil,
		spec: cloneSpec(r, where, snapshot, source.Config.Hardware.Device, cards),
	}
	if disk := firstDisk(source.Config.Hardware.Device); disk != nil {
		plan.TemplateDiskGiB = int32((disk.CapacityInKB + kibPerGiB - 1) / kibPerGiB)
	}
	if r.DiskGiB > 0 && !plan.Linked && r.DiskGiB < plan.TemplateDiskGiB {
		return nil, &InvalidError{Field: "diskGiB", Message: fmt.Sprintf(
			"template %q has a disk of %d GiB and a disk cannot shrink to %d GiB: ask for at least %d, or leave it empty",
			source.Name, plan.TemplateDiskGiB, r.DiskGiB, plan.TemplateDiskGiB)}
	}
	return plan, nil
}

// place is where a virtual machine goes.
type place struct {
	folder, pool, datastore types.ManagedObjectReference
	// profile is the id of the storage policy, empty for none.
	profile string
}

func (s *Session) placement(ctx context.Context, i *inventory, r CloneRequest) (place, error) {
	var p place
	var err error
	if p.folder, err = i.folder(ctx, r.Folder); err != nil {
		return p, err
	}
	if r.ResourcePool != "" {
		p.pool, err = i.find(ctx, resourcePools, r.ResourcePool)
	} else {
		p.pool, err = i.only(ctx, resourcePools, "*/Resources")
	}
	if err != nil {
		return p, err
	}
	if r.Datastore != "" {
		if p.datastore, err = i.find(ctx, datastores, r.Datastore); err != nil {
			return p, err
		}
	}
	if r.StoragePolicy != "" {
		if p.profile, p.datastore, err = s.storage(ctx, i, r.StoragePolicy, p.datastore); err != nil {
			return p, err
		}
	}
	if p.datastore.Value == "" {
		p.datastore, err = i.only(ctx, datastores, "*")
	}
	return p, err
}

// card makes a network device on a network.
func (i *inventory) card(ctx context.Context, n CloneNetwork) (types.BaseVirtualDevice, error) {
	ref, err := i.find(ctx, networks, n.Name)
	if err != nil {
		return nil, err
	}
	network, ok := object.NewReference(i.client, ref).(object.NetworkReference)
	if !ok {
		return nil, &InvalidError{Field: "network.devices", Message: fmt.Sprintf("%q is a %s, to which no device can be connected", n.Name, ref.Type)}
	}
	backing, err := network.EthernetCardBackingInfo(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect to network %q: %w", n.Name, err)
	}
	device, err := object.EthernetCardTypes().CreateEthernetCard("vmxnet3", backing)
	if err != nil {
		return nil, fmt.Errorf("connect to network %q: %w", n.Name, err)
	}
	if n.MAC != "" {
		card := device.(types.BaseVirtualEthernetCard).GetVirtualEthernetCard()
		card.AddressType, card.MacAddress = string(types.VirtualEthernetCardMacTypeManual), n.MAC
	}
	return device, nil
}

// snapshotFor returns the snapshot that a linked clone builds on; nil for a full clone, also where the template has no
// snapshot. A snapshot that is named must exist.
func snapshotFor(r CloneRequest, info *types.VirtualMachineSnapshotInfo) (*types.ManagedObjectReference, error) {
	switch {
	case !r.Linked:
		return nil, nil
	case r.Snapshot == "" && info == nil:
		return nil, nil
	case r.Snapshot == "":
		return info.CurrentSnapshot, nil
	}
	var existing []string
	if info != nil {
		var found *types.ManagedObjectReference
		walkSnapshots(info.RootSnapshotList, func(tree types.VirtualMachineSnapshotTree) {
			existing = append(existing, tree.Name)
			if tree.Name == r.Snapshot {
				ref := tree.Snapshot
				found = &ref
			}
		})
		if found != nil {
			return found, nil
		}
	}
	return nil, &NotFoundError{Kind: KindSnapshot, Name: r.Snapshot, Place: fmt.Sprintf("template %q", r.Template), Existing: existing}
}

func walkSnapshots(trees []types.VirtualMachineSnapshotTree, visit func(types.VirtualMachineSnapshotTree)) {
	for _, tree := range trees {
		visit(tree)
		walkSnapshots(tree.ChildSnapshotList, visit)
	}
}

// cloneSpec writes the clone for vCenter: off, with our identity, and our network devices in place of the template's. All
// else is configured on the new virtual machine, which keeps userdata out of the description of the clone task.
func cloneSpec(r CloneRequest, p place, snapshot *types.ManagedObjectReference, devices object.VirtualDeviceList, cards []types.BaseVirtualDevice) types.VirtualMachineCloneSpec {
	var changes []types.BaseVirtualDeviceConfigSpec
	for _, device := range devices.SelectByType((*types.VirtualEthernetCard)(nil)) {
		changes = append(changes, &types.VirtualDeviceConfigSpec{Device: device, Operation: types.VirtualDeviceConfigSpecOperationRemove})
	}
	for n, card := range cards {
		// Negative keys stand for devices that have none yet.
		card.GetVirtualDevice().Key = int32(-100 - n)
		changes = append(changes, &types.VirtualDeviceConfigSpec{Device: card, Operation: types.VirtualDeviceConfigSpecOperationAdd})
	}
	disks := types.VirtualMachineRelocateDiskMoveOptionsMoveAllDiskBackingsAndConsolidate
	if snapshot != nil {
		disks = types.VirtualMachineRelocateDiskMoveOptionsCreateNewChildDiskBacking
	}
	spec := types.VirtualMachineCloneSpec{
		Config: &types.VirtualMachineConfigSpec{InstanceUuid: r.InstanceUUID, DeviceChange: changes},
		Location: types.VirtualMachineRelocateSpec{
			Datastore: &p.datastore, Folder: &p.folder, Pool: &p.pool, DiskMoveType: string(disks),
		},
		Snapshot: snapshot,
	}
	if p.profile != "" {
		profile := []types.BaseVirtualMachineProfileSpec{&types.VirtualMachineDefinedProfileSpec{ProfileId: p.profile}}
		spec.Location.Profile, spec.Config.VmProfile = profile, profile
	}
	return spec
}

// Clone starts the clone and returns its task, which Task tells of from then on. The error is ErrNoCloneSlot while too
// many others run. Clone does not look for a virtual machine that exists already; vCenter refuses a second one of the same
// name in a folder, and that task ends in an error that IsNameTaken knows.
func (s *Session) Clone(ctx context.Context, owner string, plan *ClonePlan) (string, error) {
	if !s.tasks.acquireSlot(owner) {
		return "", ErrNoCloneSlot
	}
	what := fmt.Sprintf("clone template %q to %q", plan.TemplateName, plan.Name)
	res, err := methods.CloneVM_Task(ctx, s.vim(), &types.CloneVM_Task{
		This: vmRef(plan.Template), Folder: types.ManagedObjectReference{Type: "Folder", Value: plan.Folder}, Name: plan.Name, Spec: plan.spec,
	})
	if err != nil {
		s.giveBackSlot()
		return "", fmt.Errorf("%s: %w", what, err)
	}
	s.started(owner, res.Returnval, TaskClone, what)
	return res.Returnval.Value, nil
}

// IsNameTaken tells whether a task failed because the name is in use.
func IsNameTaken(err error) bool { return fault.Is(err, &types.DuplicateName{}) }
