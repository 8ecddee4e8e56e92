package sandboxtest

import (
	"context"
	"net/url"
	"path"
	"strings"
	"testing"

	"github.com/vmware/govmomi"
	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// VirtualMachines lists the names of the VMs in the vCenter that are no templates and whose name starts with prefix.
func (s *Sandbox) VirtualMachines(t *testing.T, prefix string) []string {
	t.Helper()
	ctx := t.Context()
	client := s.vcenter(t)
	defer client.Logout(context.WithoutCancel(ctx))
	found, err := find.NewFinder(client.Client, false).VirtualMachineList(ctx, "/...")
	if err != nil {
		t.Fatalf("list virtual machines: %v", err)
	}
	var names []string
	for _, vm := range found {
		var properties mo.VirtualMachine
		if err := property.DefaultCollector(client.Client).RetrieveOne(ctx, vm.Reference(), []string{"name", "config.template"}, &properties); err != nil {
			continue // destroyed since it was listed
		}
		if (properties.Config == nil || !properties.Config.Template) && strings.HasPrefix(properties.Name, prefix) {
			names = append(names, properties.Name)
		}
	}
	return names
}

// Image makes a VM template like another one, with extraConfig of its own, in the same folder.
func (s *Sandbox) Image(t *testing.T, from, name string, extraConfig map[string]string) {
	t.Helper()
	client := s.vcenter(t)
	defer client.Logout(context.WithoutCancel(t.Context()))
	finder := find.NewFinder(client.Client, false)
	source, err := finder.VirtualMachine(t.Context(), path.Join(path.Dir(s.VSphere["VSPHERE_FOLDER"]), "templates", from))
	if err != nil {
		t.Fatal(err)
	}
	var properties mo.VirtualMachine
	if err := source.Properties(t.Context(), source.Reference(), []string{"parent"}, &properties); err != nil {
		t.Fatal(err)
	}
	spec := types.VirtualMachineCloneSpec{Config: &types.VirtualMachineConfigSpec{}}
	for key, value := range extraConfig {
		spec.Config.ExtraConfig = append(spec.Config.ExtraConfig, &types.OptionValue{Key: key, Value: value})
	}
	pool, err := finder.ResourcePool(t.Context(), s.VSphere["VSPHERE_RESOURCE_POOL"])
	if err != nil {
		t.Fatal(err)
	}
	reference := pool.Reference()
	spec.Location.Pool = &reference
	task, err := source.Clone(t.Context(), object.NewFolder(client.Client, *properties.Parent), name, spec)
	if err != nil {
		t.Fatal(err)
	}
	info, err := task.WaitForResult(t.Context())
	if err != nil {
		t.Fatalf("clone %s: %v", from, err)
	}
	vm := object.NewVirtualMachine(client.Client, info.Result.(types.ManagedObjectReference))
	if task, err = vm.CreateSnapshot(t.Context(), "base", "as installed", false, false); err == nil {
		err = task.Wait(t.Context())
	}
	if err == nil {
		err = vm.MarkAsTemplate(t.Context())
	}
	if err != nil {
		t.Fatalf("make the image %s: %v", name, err)
	}
}

// vcenter logs in; the caller logs out.
func (s *Sandbox) vcenter(t *testing.T) *govmomi.Client {
	t.Helper()
	address, err := soap.ParseURL("https://" + s.VSphere["VSPHERE_SERVER"] + "/sdk")
	if err != nil {
		t.Fatal(err)
	}
	address.User = url.UserPassword(s.VSphere["VSPHERE_USERNAME"], s.VSphere["VSPHERE_PASSWORD"])
	client, err := govmomi.NewClient(t.Context(), address, true)
	if err != nil {
		t.Fatalf("log in to the vCenter of the sandbox: %v", err)
	}
	return client
}
