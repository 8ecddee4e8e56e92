package sandboxtest

import (
	"context"
	"net/url"
	"strings"
	"testing"

	"github.com/vmware/govmomi"
	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
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
