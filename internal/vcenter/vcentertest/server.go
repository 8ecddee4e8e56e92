package vcentertest

import (
	"context"
	"crypto/tls"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vmware/govmomi"
	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/session"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	// Storage policies.
	_ "github.com/vmware/govmomi/pbm/simulator"
)

// Credentials of the one user, and names of what there is.
const (
	Username = "operator@vsphere.local"
	Password = "secret"

	Datacenter   = "DC0"
	Datastore    = "LocalDS_0"
	Network      = "VM Network"
	ResourcePool = "DC0_C0/Resources"
	Template     = "ubuntu-2404-kube-v1.37.2"
)

// Server is a vCenter with one datacenter, two compute clusters of two hosts and one template.
type Server struct {
	*simulator.Server
	// Admin is a session of the test's own.
	Admin *govmomi.Client

	password atomic.Value
}

// Start starts a vCenter that ends with the test.
func Start(t testing.TB) *Server {
	t.Helper()
	model := simulator.VPX()
	model.Cluster, model.ClusterHost, model.Host, model.Machine, model.Autostart = 2, 2, 0, 1, false
	if err := model.Create(); err != nil {
		t.Fatal(err)
	}
	model.Service.TLS = new(tls.Config)
	model.Service.RegisterEndpoints = true
	model.Service.Listen = &url.URL{User: url.UserPassword(Username, Password), Host: "127.0.0.1:0"}
	v := &Server{}
	v.SetPassword(Password)
	model.Map().SessionManager().ValidLogin = func(login *types.Login) bool {
		return login.UserName == Username && login.Password == v.password.Load()
	}
	v.Server = model.Service.NewServer()
	t.Cleanup(func() {
		// The simulator goes on waiting for updates, up to a minute, for sessions that have ended. The test does not.
		go v.Close()
		model.Remove()
	})
	admin, err := govmomi.NewClient(t.Context(), v.URL, true)
	if err != nil {
		t.Fatal(err)
	}
	v.Admin = admin
	template := v.VM(t, "DC0_C0_RP0_VM0")
	Wait(t)(template.Rename(t.Context(), Template))
	if err := template.MarkAsTemplate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return v
}

// SetPassword changes the password. Sessions go on.
func (v *Server) SetPassword(password string) { v.password.Store(password) }

// Host is host and port.
func (v *Server) Host() string { return v.URL.Host }

// Thumbprint is the SHA-1 sum of the certificate.
func (v *Server) Thumbprint() string { return soap.ThumbprintSHA1(v.Certificate()) }

// Wait returns a function that waits for a task that was just started.
func Wait(t testing.TB) func(*object.Task, error) {
	return func(task *object.Task, err error) {
		t.Helper()
		if err == nil {
			err = task.Wait(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// VM returns a virtual machine of the datacenter's own folder by its name.
func (v *Server) VM(t testing.TB, name string) *object.VirtualMachine {
	t.Helper()
	ref, err := object.NewSearchIndex(v.Admin.Client).FindByInventoryPath(t.Context(), "/DC0/vm/"+name)
	if err != nil || ref == nil {
		t.Fatalf("find virtual machine %q: %v, %v", name, ref, err)
	}
	return object.NewVirtualMachine(v.Admin.Client, ref.Reference())
}

// VMs returns the virtual machines that are no templates and were not there at the start, by name.
func (v *Server) VMs(ctx context.Context) (map[string]mo.VirtualMachine, error) {
	list, err := find.NewFinder(v.Admin.Client).VirtualMachineList(ctx, "/DC0/vm/*")
	if err != nil {
		return nil, err
	}
	out := map[string]mo.VirtualMachine{}
	for _, item := range list {
		var vm mo.VirtualMachine
		err := property.DefaultCollector(v.Admin.Client).RetrieveOne(ctx, item.Reference(), []string{"name", "config", "runtime", "guest"}, &vm)
		if err != nil {
			continue // It went meanwhile.
		}
		if !vm.Config.Template && vm.Name != "DC0_C1_RP0_VM0" {
			out[vm.Name] = vm
		}
	}
	return out, nil
}

// SetGuestIP makes the guest report an address, as VMware Tools would.
func (v *Server) SetGuestIP(ctx context.Context, vm types.ManagedObjectReference, ip string) error {
	task, err := object.NewVirtualMachine(v.Admin.Client, vm).Reconfigure(ctx, types.VirtualMachineConfigSpec{
		ExtraConfig: []types.BaseOptionValue{&types.OptionValue{Key: "SET.guest.ipAddress", Value: ip}},
	})
	if err != nil {
		return err
	}
	return task.Wait(ctx)
}

// AnswerDHCP gives an address to each virtual machine that is on, until the test ends.
func (v *Server) AnswerDHCP(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	t.Cleanup(func() {
		cancel()
		<-done
	})
	go func() {
		defer close(done)
		next := byte(1)
		for tick := time.NewTicker(20 * time.Millisecond); ; {
			select {
			case <-ctx.Done():
				tick.Stop()
				return
			case <-tick.C:
			}
			vms, err := v.VMs(ctx)
			if err != nil {
				continue
			}
			for _, vm := range vms {
				if vm.Runtime.PowerState == types.VirtualMachinePowerStatePoweredOn && vm.Guest.IpAddress == "" {
					// A machine that is destroyed meanwhile needs none.
					_ = v.SetGuestIP(ctx, vm.Self, "127.0.9."+string('0'+next%10))
					next++
				}
			}
		}
	}()
}

func (v *Server) sessions(t testing.TB) mo.SessionManager {
	t.Helper()
	var manager mo.SessionManager
	err := property.DefaultCollector(v.Admin.Client).RetrieveOne(t.Context(), *v.Admin.ServiceContent.SessionManager,
		[]string{"sessionList", "currentSession"}, &manager)
	if err != nil {
		t.Fatal(err)
	}
	return manager
}

// Logins is the number of sessions, apart from the test's own.
func (v *Server) Logins(t testing.TB) int { return len(v.sessions(t).SessionList) - 1 }

// EndSessions does what vCenter does to a session after its idle time, to all but the test's own.
func (v *Server) EndSessions(t testing.TB) {
	t.Helper()
	manager := v.sessions(t)
	for _, other := range manager.SessionList {
		if other.Key == manager.CurrentSession.Key {
			continue
		}
		if err := session.NewManager(v.Admin.Client).TerminateSession(t.Context(), []string{other.Key}); err != nil {
			t.Fatal(err)
		}
	}
}
