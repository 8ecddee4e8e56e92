package vcenter

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/view"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/types"
)

// Folders of a datacenter below which kinds of objects live, by the names that inventory paths use.
const (
	vmFolder        = "vm"
	hostFolder      = "host"
	datastoreFolder = "datastore"
	networkFolder   = "network"
)

// inventory looks objects up in one datacenter.
type inventory struct {
	client *vim25.Client
	finder *find.Finder
	dc     *object.Datacenter
}

// newInventory finds the datacenter; empty or "*" stands for the only one.
func newInventory(ctx context.Context, c *vim25.Client, datacenter string) (*inventory, error) {
	finder := find.NewFinder(c, false)
	name := datacenter
	if name == "" {
		name = "*"
	}
	list, err := finder.DatacenterList(ctx, name)
	if err != nil && !isFindMiss(err) {
		return nil, fmt.Errorf("find datacenter %q: %w", datacenter, err)
	}
	switch len(list) {
	case 1:
		finder.SetDatacenter(list[0])
		return &inventory{client: c, finder: finder, dc: list[0]}, nil
	case 0:
		existing, err := names(ctx, c, c.ServiceContent.RootFolder, "Datacenter")
		if err != nil {
			return nil, err
		}
		return nil, &NotFoundError{Kind: KindDatacenter, Name: datacenter, Place: "vCenter", Existing: existing}
	default:
		var candidates []string
		for _, dc := range list {
			candidates = append(candidates, dc.InventoryPath)
		}
		return nil, &AmbiguousError{Kind: KindDatacenter, Name: strings.Trim(datacenter, "*"), Place: "vCenter", Candidates: candidates}
	}
}

func (i *inventory) place() string {
	return fmt.Sprintf("datacenter %q", path.Base(i.dc.InventoryPath))
}

// lookup describes how to find one kind of object.
type lookup struct {
	kind   Kind
	folder string
	// types are the managed object types that count.
	types []string
	list  func(context.Context, *find.Finder, string) ([]object.Reference, error)
}

var (
	templates = lookup{KindTemplate, vmFolder, []string{"VirtualMachine"},
		func(ctx context.Context, f *find.Finder, name string) ([]object.Reference, error) {
			return references(f.VirtualMachineList(ctx, name))
		}}
	folders = lookup{KindFolder, vmFolder, []string{"Folder"},
		func(ctx context.Context, f *find.Finder, name string) ([]object.Reference, error) {
			return references(f.FolderList(ctx, name))
		}}
	datastores = lookup{KindDatastore, datastoreFolder, []string{"Datastore"},
		func(ctx context.Context, f *find.Finder, name string) ([]object.Reference, error) {
			return references(f.DatastoreList(ctx, name))
		}}
	networks = lookup{KindNetwork, networkFolder, []string{"Network", "DistributedVirtualPortgroup", "OpaqueNetwork"},
		func(ctx context.Context, f *find.Finder, name string) ([]object.Reference, error) {
			return references(f.NetworkList(ctx, name))
		}}
	resourcePools = lookup{KindResourcePool, hostFolder, []string{"ResourcePool", "VirtualApp"},
		func(ctx context.Context, f *find.Finder, name string) ([]object.Reference, error) {
			return references(f.ResourcePoolList(ctx, name))
		}}
)

func references[T object.Reference](list []T, err error) ([]object.Reference, error) {
	out := make([]object.Reference, 0, len(list))
	for _, obj := range list {
		out = append(out, obj)
	}
	return out, err
}

// find returns the one object that name stands for. The plain case, a name or path that leads from the kind's folder to
// the object, costs one call whatever the size of the inventory; names deeper down and patterns are searched for.
func (i *inventory) find(ctx context.Context, l lookup, name string) (types.ManagedObjectReference, error) {
	none := types.ManagedObjectReference{}
	if !strings.ContainsAny(name, "*?[") {
		full := name
		if !strings.HasPrefix(name, "/") {
			full = path.Join(i.dc.InventoryPath, l.folder, name)
		}
		ref, err := object.NewSearchIndex(i.client).FindByInventoryPath(ctx, full)
		if err != nil {
			return none, fmt.Errorf("find %s %q in %s: %w", l.kind, name, i.place(), err)
		}
		if ref != nil && slices.Contains(l.types, ref.Reference().Type) {
			return ref.Reference(), nil
		}
	}
	found, err := l.list(ctx, i.finder, name)
	if err != nil && !isFindMiss(err) {
		return none, fmt.Errorf("find %s %q in %s: %w", l.kind, name, i.place(), err)
	}
	// Without a slash the finder looks in all datacenters.
	found = slices.DeleteFunc(found, func(ref object.Reference) bool { return !within(inventoryPath(ref), i.dc.InventoryPath) })
	switch len(found) {
	case 1:
		return found[0].Reference(), nil
	case 0:
		return none, i.notFound(ctx, l, name)
	default:
		candidates := make([]string, 0, len(found))
		for _, ref := range found {
			candidates = append(candidates, inventoryPath(ref))
		}
		slices.Sort(candidates)
		return none, &AmbiguousError{Kind: l.kind, Name: name, Place: i.place(), Candidates: candidates}
	}
}

func (i *inventory) notFound(ctx context.Context, l lookup, name string) error {
	root := i.dc.Reference()
	if l.kind == KindFolder {
		// A datacenter has other folders, which hold no virtual machines.
		own, err := i.dc.Folders(ctx)
		if err != nil {
			return fmt.Errorf("find the folders of %s: %w", i.place(), err)
		}
		root = own.VmFolder.Reference()
	}
	existing, err := names(ctx, i.client, root, l.types[0])
	if err != nil {
		return err
	}
	return &NotFoundError{Kind: l.kind, Name: name, Place: i.place(), Existing: existing}
}

// only returns the only object of a kind, for a field that is left empty.
func (i *inventory) only(ctx context.Context, l lookup, pattern string) (types.ManagedObjectReference, error) {
	ref, err := i.find(ctx, l, pattern)
	if ambiguous, ok := err.(*AmbiguousError); ok {
		ambiguous.Name = ""
	}
	return ref, err
}

// folder finds a folder for virtual machines; empty stands for the datacenter's own.
func (i *inventory) folder(ctx context.Context, name string) (types.ManagedObjectReference, error) {
	if name != "" {
		return i.find(ctx, folders, name)
	}
	own, err := i.dc.Folders(ctx)
	if err != nil {
		return types.ManagedObjectReference{}, fmt.Errorf("find the folders of %s: %w", i.place(), err)
	}
	return own.VmFolder.Reference(), nil
}

// names lists the sorted names of objects of one type below root; of virtual machines, those that are templates.
func names(ctx context.Context, c *vim25.Client, root types.ManagedObjectReference, kind string) ([]string, error) {
	container, err := view.NewManager(c).CreateContainerView(ctx, root, []string{kind}, true)
	if err != nil {
		return nil, fmt.Errorf("list objects of type %s: %w", kind, err)
	}
	// The view ends with the session at the latest.
	defer func() { _ = container.Destroy(ctx) }()
	properties := []string{"name"}
	if kind == "VirtualMachine" {
		properties = append(properties, "config.template")
	}
	var content []types.ObjectContent
	if err := container.Retrieve(ctx, []string{kind}, properties, &content); err != nil {
		return nil, fmt.Errorf("list objects of type %s: %w", kind, err)
	}
	var out []string
	for _, object := range content {
		name, template := "", kind != "VirtualMachine"
		for _, property := range object.PropSet {
			switch property.Name {
			case "name":
				name, _ = property.Val.(string)
			case "config.template":
				template, _ = property.Val.(bool)
			}
		}
		// Switches have a port group of their own for uplinks, to which no machine can be connected.
		if template && name != "" && !strings.Contains(name, "-DVUplinks-") {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

func inventoryPath(ref object.Reference) string {
	if p, ok := ref.(interface{ GetInventoryPath() string }); ok {
		return p.GetInventoryPath()
	}
	return ""
}

func within(p, dc string) bool { return p == "" || strings.HasPrefix(p, dc+"/") }

func isFindMiss(err error) bool {
	_, miss := err.(*find.NotFoundError)
	return miss
}
