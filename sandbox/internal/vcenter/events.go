package vcenter

import (
	"sync"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// Kind is what happened to a virtual machine.
type Kind string

const (
	// Created: it exists and is powered off.
	Created Kind = "created"
	// PoweredOn: it boots.
	PoweredOn Kind = "powered on"
	// PoweredOff: the plug was pulled, or the guest's shutdown is complete.
	PoweredOff Kind = "powered off"
	// Suspended: its memory is kept, nothing runs.
	Suspended Kind = "suspended"
	// ShutdownAsked: the guest is to shut down; Event.Done is called afterwards.
	ShutdownAsked Kind = "shutdown asked"
	// RebootAsked: the guest is to shut down and boot.
	RebootAsked Kind = "reboot asked"
	// Removed: it is gone.
	Removed Kind = "removed"
)

// Reference names a virtual machine for as long as it exists.
type Reference = types.ManagedObjectReference

// Event is one thing that happened to one virtual machine.
type Event struct {
	Kind Kind
	VM   Reference
	// Machine is what it was at that moment; empty when it was removed.
	Machine Machine
	// Done completes a shutdown; nil for other kinds.
	Done func()
}

// queue is unbounded: the simulator tells of events while it holds the locks
// of its objects and must never wait for us.
type queue struct {
	mu     sync.Mutex
	list   []Event
	more   chan struct{}
	closed bool
}

func newQueue() *queue { return &queue{more: make(chan struct{}, 1)} }

func (q *queue) put(e Event) {
	q.mu.Lock()
	q.list = append(q.list, e)
	q.mu.Unlock()
	q.signal()
}

func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.signal()
}

func (q *queue) signal() {
	select {
	case q.more <- struct{}{}:
	default:
	}
}

// next waits for an event; false means that there will be none.
func (q *queue) next() (Event, bool) {
	for {
		q.mu.Lock()
		if len(q.list) > 0 {
			e := q.list[0]
			q.list = q.list[1:]
			q.mu.Unlock()
			return e, true
		}
		closed := q.closed
		q.mu.Unlock()
		if closed {
			return Event{}, false
		}
		<-q.more
	}
}

// Next waits for the next event, in the order in which they happened; false
// once the server is closed. For one caller.
func (s *Server) Next() (Event, bool) { return s.events.next() }

// watcher is told of each change in the inventory by the simulator.
type watcher struct{ queue *queue }

var _ simulator.RegisterObject = (*watcher)(nil)

// Reference is the name under which the simulator keeps the watcher.
func (w *watcher) Reference() types.ManagedObjectReference {
	return types.ManagedObjectReference{Type: "SandboxWatcher", Value: "guests"}
}

func (w *watcher) PutObject(_ *simulator.Context, obj mo.Reference) {
	if vm, ok := obj.(*simulator.VirtualMachine); ok {
		w.queue.put(Event{Kind: Created, VM: vm.Self, Machine: machineOf(&vm.VirtualMachine)})
	}
}

func (w *watcher) UpdateObject(_ *simulator.Context, obj mo.Reference, changes []types.PropertyChange) {
	vm, ok := obj.(*mo.VirtualMachine)
	if !ok {
		return
	}
	for _, c := range changes {
		if c.Name != "runtime.powerState" {
			continue
		}
		kind := map[types.VirtualMachinePowerState]Kind{
			types.VirtualMachinePowerStatePoweredOn:  PoweredOn,
			types.VirtualMachinePowerStatePoweredOff: PoweredOff,
			types.VirtualMachinePowerStateSuspended:  Suspended,
		}[vm.Runtime.PowerState]
		w.queue.put(Event{Kind: kind, VM: vm.Self, Machine: machineOf(vm)})
	}
}

func (w *watcher) RemoveObject(_ *simulator.Context, ref types.ManagedObjectReference) {
	if ref.Type == "VirtualMachine" {
		w.queue.put(Event{Kind: Removed, VM: ref})
	}
}
