package vcenter

import (
	"github.com/google/uuid"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// intercept is called before each method and makes the simulator do what a
// real vCenter does where they differ: a clone keeps its source's extraConfig
// and gets a BIOS UUID of its own (the simulator derives it from the name, and
// names come again), and a guest takes its time to shut down.
func intercept(ctx *simulator.Context, method *simulator.Method) (mo.Reference, types.BaseMethodFault) {
	if ctx.Session == nil {
		return nil, nil
	}
	switch request := method.Body.(type) {
	case *types.CloneVM_Task:
		if source, ok := ctx.Map.Get(method.This).(*simulator.VirtualMachine); ok {
			completeClone(ctx, source, &request.Spec)
		}
	case *types.ShutdownGuest, *types.RebootGuest:
		// The request itself keeps the name of the machine.
		method.This = agentReference
	}
	return nil, nil
}

func completeClone(ctx *simulator.Context, source *simulator.VirtualMachine, spec *types.VirtualMachineCloneSpec) {
	if spec.Config == nil {
		spec.Config = &types.VirtualMachineConfigSpec{}
	}
	if spec.Config.Uuid == "" {
		spec.Config.Uuid = uuid.NewString()
	}
	given := map[string]bool{"govcsim": true} // the simulator's own mark
	for _, option := range spec.Config.ExtraConfig {
		given[option.GetOptionValue().Key] = true
	}
	ctx.WithLock(source, func() {
		for _, option := range source.Config.ExtraConfig {
			if o := option.GetOptionValue(); !given[o.Key] {
				spec.Config.ExtraConfig = append(spec.Config.ExtraConfig, &types.OptionValue{Key: o.Key, Value: o.Value})
			}
		}
	})
}

// agent answers for the machines where a method needs their guest. It is an
// object of the inventory, and those all embed a managed object.
type agent struct {
	mo.ExtensibleManagedObject
	server *Server
}

var agentReference = types.ManagedObjectReference{Type: "SandboxAgent", Value: "agent"}

func newAgent(s *Server) *agent {
	return &agent{ExtensibleManagedObject: mo.ExtensibleManagedObject{Self: agentReference}, server: s}
}

// ask reads the machine under its lock, or returns why its guest cannot be asked.
func (a *agent) ask(ctx *simulator.Context, ref types.ManagedObjectReference) (*simulator.VirtualMachine, Machine, *soap.Fault) {
	vm, ok := ctx.Map.Get(ref).(*simulator.VirtualMachine)
	if !ok {
		return nil, Machine{}, simulator.Fault("", &types.ManagedObjectNotFound{Obj: ref})
	}
	var machine Machine
	var fault *soap.Fault
	ctx.WithLock(vm, func() {
		machine = machineOf(&vm.VirtualMachine)
		if state := vm.Runtime.PowerState; state != types.VirtualMachinePowerStatePoweredOn {
			fault = simulator.Fault("", &types.InvalidPowerState{
				RequestedState: types.VirtualMachinePowerStatePoweredOn, ExistingState: state,
			})
		} else if vm.Guest.ToolsRunningStatus != string(types.VirtualMachineToolsRunningStatusGuestToolsRunning) {
			fault = simulator.Fault("VMware Tools do not run in the guest", &types.ToolsUnavailable{})
		}
	})
	return vm, machine, fault
}

// ShutdownGuest asks the guest to shut down; the machine is powered off when
// it has.
func (a *agent) ShutdownGuest(ctx *simulator.Context, req *types.ShutdownGuest) soap.HasFault {
	vm, machine, fault := a.ask(ctx, req.This)
	if fault != nil {
		return &methods.ShutdownGuestBody{Fault_: fault}
	}
	done := func() {
		ctx := a.server.context()
		ctx.WithLock(vm, func() { vm.ShutdownGuest(ctx, req) })
	}
	a.server.events.put(Event{Kind: ShutdownAsked, VM: req.This, Machine: machine, Done: done})
	return &methods.ShutdownGuestBody{Res: &types.ShutdownGuestResponse{}}
}

// RebootGuest asks the guest to shut down and boot.
func (a *agent) RebootGuest(ctx *simulator.Context, req *types.RebootGuest) soap.HasFault {
	_, machine, fault := a.ask(ctx, req.This)
	if fault != nil {
		return &methods.RebootGuestBody{Fault_: fault}
	}
	a.server.events.put(Event{Kind: RebootAsked, VM: req.This, Machine: machine})
	return &methods.RebootGuestBody{Res: &types.RebootGuestResponse{}}
}
