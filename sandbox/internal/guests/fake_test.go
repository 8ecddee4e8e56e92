package guests

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/millwright-dev/millwright/sandbox/internal/address"
	"github.com/millwright-dev/millwright/sandbox/internal/endpoint"
	"github.com/millwright-dev/millwright/sandbox/internal/process"
	"github.com/millwright-dev/millwright/sandbox/internal/state"
	"github.com/millwright-dev/millwright/sandbox/internal/vcenter"
)

// TestMain lets the test binary be the guest: `run --config FILE`.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "run" {
		guestMain(os.Args[3])
	}
	os.Exit(m.Run())
}

// guestMain does what the userdata says, line by line: it tells lines that are
// events, and knows "exit", "deaf" (to SIGTERM) and "child".
func guestMain(path string) {
	var c config
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	boots, err := os.OpenFile(filepath.Join(c.Dir, "boots"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		os.Exit(1)
	}
	fmt.Fprintln(boots, c.Address)
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	fmt.Fprintln(os.Stderr, "guest", c.Name, "boots")
	for scanner := bufio.NewScanner(bytesOf(c.GuestInfo["userdata"])); scanner.Scan(); {
		switch line := scanner.Text(); line {
		case "exit":
			os.Exit(3)
		case "deaf":
			signal.Ignore(syscall.SIGTERM)
		case "child":
			child := exec.Command("sleep", "600")
			if err := child.Start(); err != nil {
				os.Exit(1)
			}
			fmt.Printf(`{"event":"phase","phase":"child","message":"%d"}`+"\n", child.Process.Pid)
		default:
			fmt.Println(line)
		}
	}
	<-term
	os.Exit(0)
}

// fakeVCenter tells events that the test gives it and keeps what is reported.
type fakeVCenter struct {
	events chan vcenter.Event
	mu     sync.Mutex
	tools  map[vcenter.Reference]vcenter.Tools
}

func (f *fakeVCenter) Next() (vcenter.Event, bool) {
	e, ok := <-f.events
	return e, ok
}

func (f *fakeVCenter) Report(ref vcenter.Reference, tools vcenter.Tools) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tools[ref] = tools
}

func (f *fakeVCenter) reported(ref vcenter.Reference) vcenter.Tools {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.tools[ref]
}

// world is a manager that runs, with a machine to play with.
type world struct {
	*testing.T
	vCenter *fakeVCenter
	dir     state.Dir
	store   *state.Store
	err     error // what Programs fails with
}

var ref = vcenter.Reference{Type: "VirtualMachine", Value: "vm-1"}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldOf(t, nil)
}

// newWorldOf has instant guests where nodes is not nil.
func newWorldOf(t *testing.T, nodes Nodes) *world {
	t.Helper()
	dir, err := state.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := dir.Create(); err != nil {
		t.Fatal(err)
	}
	store, err := state.NewStore(dir, state.State{})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, dir: dir, store: store, vCenter: &fakeVCenter{
		events: make(chan vcenter.Event), tools: map[vcenter.Reference]vcenter.Tools{},
	}}
	manager := &Manager{
		VCenter: w.vCenter, Runner: process.NewRunner(dir.Pids()), Dir: dir, Store: store, DefaultVersion: "v1.37.2", Nodes: nodes,
		Endpoints: &endpoint.Forwarder{Changed: func(address string, backends []string) {
			store.SetEndpoint(state.Endpoint{Address: address, Backends: backends})
		}},
		Programs: func(context.Context, string) (Programs, error) {
			return Programs{Guest: os.Args[0], Dir: "/bin"}, w.err
		},
	}
	var running sync.WaitGroup
	running.Go(func() { manager.Run(context.Background(), address.Block(127).Machines()) })
	t.Cleanup(func() { close(w.vCenter.events); running.Wait() })
	return w
}

// tell has vCenter tell of the machine, whose userdata is given.
func (w *world) tell(kind vcenter.Kind, userdata string, done func()) {
	w.Helper()
	machine := vcenter.Machine{Name: "node-1", UUID: "u-1", Connected: true, GuestInfo: map[string]string{"userdata": userdata}}
	w.vCenter.events <- vcenter.Event{Kind: kind, VM: ref, Machine: machine, Done: done}
}

// until waits for the machine to be as wanted.
func (w *world) until(what string, want func(state.Machine) bool) state.Machine {
	w.Helper()
	var last state.Machine
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		machines := w.store.Get().Machines
		i := slices.IndexFunc(machines, func(m state.Machine) bool { return m.Ref == ref.Value })
		if last = (state.Machine{}); i >= 0 {
			last = machines[i]
		}
		if want(last) {
			return last
		}
	}
	w.Fatalf("never %s: %+v", what, last)
	return last
}

func phaseIs(phase string) func(state.Machine) bool {
	return func(m state.Machine) bool { return m.Phase == phase }
}

func powerIs(power string) func(state.Machine) bool {
	return func(m state.Machine) bool { return m.Power == power }
}

// boots returns the address of each boot so far.
func (w *world) boots() string {
	w.Helper()
	data, err := os.ReadFile(filepath.Join(w.dir.Machines(), "u-1", "boots"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		w.Fatal(err)
	}
	return string(data)
}
