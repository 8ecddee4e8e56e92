package guests

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millwright-dev/millwright/sandbox/internal/state"
	"github.com/millwright-dev/millwright/sandbox/internal/vcenter"
)

// fakeNodes tells what is asked of it.
type fakeNodes struct {
	calls chan string
	err   error
}

func (f *fakeNodes) Up(_ context.Context, m vcenter.Machine, address string) error {
	f.calls <- "up " + m.Name + " " + m.UUID + " " + address
	return f.err
}

func (f *fakeNodes) Down(_ context.Context, m vcenter.Machine) error {
	f.calls <- "down " + m.Name
	return nil
}

func TestAnInstantMachineIsANodeForAsLongAsItIsOn(t *testing.T) {
	nodes := &fakeNodes{calls: make(chan string, 10)}
	w := newWorldOf(t, nodes)
	w.tell(vcenter.PoweredOn, "#cloud-config", nil)
	got := w.until("running", phaseIs("running"))
	want := state.Machine{
		Ref: "vm-1", Name: "node-1", UUID: "u-1", Power: "poweredOn", Address: "127.127.16.1", KubernetesVersion: "v1.37.2",
		Phase: "running", Message: "instant guest",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("machine (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(vcenter.Tools{Running: true, Address: "127.127.16.1", HostName: "node-1"}, w.vCenter.reported(ref)); diff != "" {
		t.Errorf("reported (-want +got):\n%s", diff)
	}
	w.tell(vcenter.PoweredOff, "", nil)
	w.until("off", powerIs("poweredOff"))
	w.tell(vcenter.Removed, "", nil)
	w.until("gone", powerIs(""))
	close(nodes.calls)
	var calls []string
	for call := range nodes.calls {
		calls = append(calls, call)
	}
	if diff := cmp.Diff([]string{"up node-1 u-1 127.127.16.1", "down node-1"}, calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestAnInstantMachineThatCannotJoinSaysWhy(t *testing.T) {
	w := newWorldOf(t, &fakeNodes{calls: make(chan string, 10), err: errors.New("no such API server")})
	w.tell(vcenter.PoweredOn, "#cloud-config", nil)
	if m := w.until("failed", phaseIs("failed")); m.Message != "no such API server" {
		t.Errorf("message %q", m.Message)
	}
}
