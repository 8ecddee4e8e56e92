package guests

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/millwright-dev/millwright/sandbox/internal/state"
	"github.com/millwright-dev/millwright/sandbox/internal/vcenter"
)

// Power states, in vCenter's words.
const (
	poweredOn  = "poweredOn"
	poweredOff = "poweredOff"
	suspended  = "suspended"
)

// failed is a guest's phase when it gave up; the sandbox uses it for a guest
// that could not even start.
const failed = "failed"

// machine is one virtual machine. Everything about it happens in its own
// goroutine, in order.
type machine struct {
	manager *Manager
	ref     vcenter.Reference
	inbox   <-chan vcenter.Event
	info    vcenter.Machine
	state   state.Machine
	address string
	console *os.File

	// registered delivers how an instant guest came up; isNode says that it did.
	registered chan error
	isNode     bool

	// guest runs; nil while the machine is off, or its guest has ended.
	guest *guest
	// programs delivers what the guest needs, where that must be built first.
	programs chan prepared
	abandon  context.CancelFunc
	// stopped is what to do once the guest has shut down as it was asked.
	stopped func()
}

// prepared is the outcome of getting a guest's programs.
type prepared struct {
	Programs
	err error
}

// run handles the machine until it is removed or vCenter is closed.
func (m *machine) run(ctx context.Context) {
	defer func() {
		m.kill(ctx)
		if m.console != nil {
			m.console.Close()
		}
	}()
	for {
		var tells <-chan told
		var ended <-chan struct{}
		if m.guest != nil {
			tells, ended = m.guest.tells, m.guest.Done()
		}
		select {
		case event, ok := <-m.inbox:
			if !ok {
				return
			}
			m.handle(ctx, event)
		case p := <-m.programs:
			m.programs = nil
			m.boot(p)
		case err := <-m.registered:
			m.registered = nil
			m.joined(err)
		case t, ok := <-tells:
			if !ok {
				m.guest.tells = nil
				continue
			}
			m.hear(t)
		case <-ended:
			m.guestEnded()
		}
	}
}

func (m *machine) handle(ctx context.Context, event vcenter.Event) {
	if event.Kind != vcenter.Removed {
		m.info = event.Machine
		if m.info.KubernetesVersion == "" {
			m.info.KubernetesVersion = m.manager.DefaultVersion
		}
	}
	switch event.Kind {
	case vcenter.Created:
		m.state = state.Machine{Ref: m.ref.Value, Name: m.info.Name, Power: poweredOff}
		m.save()
	case vcenter.PoweredOn:
		if m.state.Power == suspended && m.guest != nil {
			_ = m.guest.SignalGroup(syscall.SIGCONT)
			m.state.Power = poweredOn
			m.report(true)
			m.save()
			return
		}
		m.powerOn(ctx)
	case vcenter.PoweredOff:
		m.kill(ctx)
		m.manager.VCenter.Report(m.ref, vcenter.Tools{})
		m.state.Power, m.state.Phase, m.state.Message = poweredOff, "", ""
		m.save()
	case vcenter.Suspended:
		if m.guest != nil {
			_ = m.guest.SignalGroup(syscall.SIGSTOP)
		}
		m.leave(ctx)
		m.report(false)
		m.state.Power = suspended
		m.save()
	case vcenter.ShutdownAsked:
		m.shutDown(event.Done)
	case vcenter.RebootAsked:
		m.shutDown(func() { m.powerOn(ctx) })
	case vcenter.Removed:
		m.kill(ctx)
		m.manager.release(m.ref)
		if err := os.RemoveAll(m.dir()); err != nil {
			m.say("cannot remove the machine's folder: %v", err)
		}
		m.manager.Store.RemoveMachine(m.ref.Value)
	}
}

// dir is the machine's disk. It goes by UUID: a name may come again.
func (m *machine) dir() string { return filepath.Join(m.manager.Dir.Machines(), m.info.UUID) }

func (m *machine) save() { m.manager.Store.SetMachine(m.state) }

func (m *machine) phase(phase, message string) {
	m.state.Phase, m.state.Message = phase, message
	m.save()
}

// say writes a line of the sandbox's own to the machine's console.
func (m *machine) say(format string, args ...any) {
	if m.console != nil {
		fmt.Fprintf(m.console, "sandbox: %s: %s\n", time.Now().Format(time.RFC3339), fmt.Sprintf(format, args...))
	}
}

// openConsole starts a new console log for a new machine and goes on with the
// old one after a power cycle.
func (m *machine) openConsole() error {
	if m.console != nil {
		return nil
	}
	var err error
	m.console, err = os.OpenFile(m.manager.Dir.MachineLog(m.info.Name), os.O_CREATE|os.O_WRONLY|os.O_APPEND|os.O_TRUNC, 0o600)
	return err
}

// powerOn begins to boot.
func (m *machine) powerOn(ctx context.Context) {
	m.kill(ctx)
	m.state = state.Machine{
		Ref: m.ref.Value, Name: m.info.Name, UUID: m.info.UUID, Power: poweredOn, KubernetesVersion: m.info.KubernetesVersion,
	}
	if err := m.openConsole(); err != nil {
		m.phase(failed, err.Error())
		return
	}
	var err error
	if m.info.Connected {
		if m.address, err = m.manager.addressOf(m.ref); err != nil {
			m.say("%v", err)
			m.phase(failed, err.Error())
			return
		}
	}
	m.state.Address = m.address
	m.say("power on")
	_, ignites := m.info.GuestInfo["ignition.config.data"]
	if _, ok := m.info.GuestInfo["userdata"]; !ok && !ignites {
		m.say("there is no guestinfo.userdata and no guestinfo.ignition.config.data: nothing to do but to be there")
		m.report(true)
		m.phase("running", "no userdata")
		return
	}
	if m.manager.Nodes != nil {
		m.join(ctx)
		return
	}
	m.phase("booting", "getting the programs of Kubernetes "+m.info.KubernetesVersion+", see `sandbox logs daemon`")
	ctx, m.abandon = context.WithCancel(ctx)
	programs, version := make(chan prepared, 1), m.info.KubernetesVersion
	m.programs = programs
	go func() {
		p, err := m.manager.Programs(ctx, version)
		programs <- prepared{p, err}
	}()
}

// boot starts the guest.
func (m *machine) boot(p prepared) {
	if p.err == nil {
		m.guest, p.err = m.start(p.Programs)
	}
	if p.err != nil {
		m.say("the guest cannot start: %v", p.err)
		m.phase(failed, p.err.Error())
		return
	}
	m.state.Guest = m.guest.Identity
	m.phase("booting", "")
	m.report(true)
}

// report tells vCenter what VMware Tools would.
func (m *machine) report(running bool) {
	if m.info.Silent {
		return
	}
	m.manager.VCenter.Report(m.ref, vcenter.Tools{Running: running, Address: m.address, HostName: m.info.Name})
}

// shutDown asks the guest to end; then is done when it has.
func (m *machine) shutDown(then func()) {
	m.say("shutdown asked")
	if m.guest == nil {
		then()
		return
	}
	m.stopped = then
	_ = m.guest.Terminate()
}

// guestEnded handles the end of a guest that nobody killed.
func (m *machine) guestEnded() {
	guest := m.guest
	guest.end(m, m.hear)
	m.guest = nil
	if then := m.stopped; then != nil {
		m.stopped = nil
		m.say("the guest has shut down")
		then()
		return
	}
	// As on a machine whose system has crashed: it stays powered on.
	ended := "the guest has ended by itself"
	if err := guest.Err(); err != nil {
		ended = fmt.Sprintf("the guest has crashed: %v", err)
	}
	m.say("%s", ended)
	m.report(false)
	if m.state.Phase == failed {
		// Its own last words say more.
		m.save()
		return
	}
	m.phase("crashed", ended)
}

// kill pulls the plug.
func (m *machine) kill(ctx context.Context) {
	if m.abandon != nil {
		m.abandon()
		m.abandon, m.programs = nil, nil
	}
	m.stopped = nil
	m.leave(ctx)
	if m.guest == nil {
		return
	}
	guest := m.guest
	m.guest = nil
	_ = guest.Kill()
	guest.end(m, func(told) {})
	<-guest.Done()
	m.say("power off")
}
