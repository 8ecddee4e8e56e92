package guests

import (
	"os"
	"time"

	"github.com/millwright-dev/millwright/sandbox/internal/process"
)

// guest is a running guest process.
type guest struct {
	*process.Process
	// tells are its lines; closed after the last.
	tells chan told
	// stdin is held open: its end is the guest's sign that the sandbox is gone.
	stdin *os.File
	// holds are the virtual addresses it holds, each with its backend.
	holds map[hold]bool
}

type hold struct{ endpoint, backend string }

// start starts the guest of a machine whose console is open.
func (m *machine) start(p Programs) (*guest, error) {
	if err := os.MkdirAll(m.dir(), 0o700); err != nil {
		return nil, err
	}
	path, err := writeConfig(m.dir(), m.address, p.Dir, m.info)
	if err != nil {
		return nil, err
	}
	stdin, held, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer stdin.Close()
	lines, stdout, err := os.Pipe()
	if err != nil {
		held.Close()
		return nil, err
	}
	defer stdout.Close()
	proc, err := m.manager.Runner.Start(process.Spec{
		Name: "vm-" + m.info.Name + "-" + m.ref.Value, Path: p.Guest, Args: []string{"run", "--config", path}, Dir: m.dir(),
		Stdin: stdin, Stdout: stdout, Stderr: m.console,
	})
	if err != nil {
		held.Close()
		lines.Close()
		return nil, err
	}
	g := &guest{Process: proc, tells: make(chan told), stdin: held, holds: map[hold]bool{}}
	go func() {
		defer lines.Close()
		defer close(g.tells)
		listen(lines, m.console, func(t told) { g.tells <- t })
	}()
	go func() {
		<-proc.Done()
		// Somebody outside the guest's group may have kept its end of the pipe.
		_ = lines.SetReadDeadline(time.Now().Add(time.Second))
	}()
	return g, nil
}

// hear takes in what the guest tells.
func (m *machine) hear(t told) {
	switch t.Event {
	case "phase":
		m.phase(t.Phase, t.Message)
	case "vip":
		h := hold{t.endpoint(), t.Backend}
		if !t.Up {
			delete(m.guest.holds, h)
			m.manager.Endpoints.Down(h.endpoint, h.backend)
			return
		}
		if err := m.manager.Endpoints.Up(h.endpoint, h.backend); err != nil {
			m.say("%v", err)
			m.phase(m.state.Phase, err.Error())
			return
		}
		m.guest.holds[h] = true
	default:
		m.say("the guest tells of %q, which this sandbox does not know", t.Event)
	}
}

// end cleans up after a guest that has ended. hear gets what it told last.
func (g *guest) end(m *machine, hear func(told)) {
	if g.tells != nil {
		for t := range g.tells {
			hear(t)
		}
	}
	g.stdin.Close()
	for h := range g.holds {
		m.manager.Endpoints.Down(h.endpoint, h.backend)
	}
	m.state.Guest = process.Identity{}
}
