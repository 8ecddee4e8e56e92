package guests

import (
	"context"
	"sync"

	"github.com/millwright-dev/millwright/sandbox/internal/address"
	"github.com/millwright-dev/millwright/sandbox/internal/endpoint"
	"github.com/millwright-dev/millwright/sandbox/internal/process"
	"github.com/millwright-dev/millwright/sandbox/internal/state"
	"github.com/millwright-dev/millwright/sandbox/internal/vcenter"
)

// Programs are what a guest of one Kubernetes version needs.
type Programs struct {
	// Guest is the guest itself; Dir holds etcd, kube-apiserver and the like.
	Guest, Dir string
}

// VCenter is where machines come from and what their guests report to.
type VCenter interface {
	Next() (vcenter.Event, bool)
	Report(vcenter.Reference, vcenter.Tools)
}

// Nodes are the Nodes of instant guests.
type Nodes interface {
	// Up returns when the machine's Node is Ready.
	Up(ctx context.Context, m vcenter.Machine, address string) error
	// Down has the machine's Node say that it stopped.
	Down(ctx context.Context, m vcenter.Machine) error
}

// Manager runs the guests of one vCenter.
type Manager struct {
	VCenter   VCenter
	Runner    *process.Runner
	Dir       state.Dir
	Store     *state.Store
	Endpoints *endpoint.Forwarder
	// Programs returns those of a version. The first time for a version it may
	// build them, which takes minutes.
	Programs func(ctx context.Context, version string) (Programs, error)
	// Nodes, where set, are what guests amount to: no process runs.
	Nodes Nodes
	// DefaultVersion is that of machines whose template names none.
	DefaultVersion string

	mu        sync.Mutex
	addresses *address.Pool
}

// Run runs guests until vCenter is closed, and returns when all have ended.
// When ctx is done, guests are ended at once.
func (m *Manager) Run(ctx context.Context, addresses *address.Pool) {
	m.addresses = addresses
	inboxes := map[vcenter.Reference]chan vcenter.Event{}
	var all sync.WaitGroup
	for {
		event, ok := m.VCenter.Next()
		if !ok {
			break
		}
		inbox := inboxes[event.VM]
		if inbox == nil {
			// Room for more power operations than anybody has in flight.
			inbox = make(chan vcenter.Event, 256)
			inboxes[event.VM] = inbox
			machine := &machine{manager: m, ref: event.VM, inbox: inbox}
			all.Go(func() { machine.run(ctx) })
		}
		inbox <- event
		if event.Kind == vcenter.Removed {
			delete(inboxes, event.VM)
			close(inbox)
		}
	}
	for _, inbox := range inboxes {
		close(inbox)
	}
	all.Wait()
}

func (m *Manager) addressOf(ref vcenter.Reference) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.addresses.Get(ref.Value)
}

func (m *Manager) release(ref vcenter.Reference) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.addresses.Release(ref.Value)
}
