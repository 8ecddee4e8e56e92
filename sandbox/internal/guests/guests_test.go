package guests

import (
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millwright-dev/millwright/sandbox/internal/process"
	"github.com/millwright-dev/millwright/sandbox/internal/state"
	"github.com/millwright-dev/millwright/sandbox/internal/vcenter"
)

const running = `{"event":"phase","phase":"running","message":"up"}`

func bytesOf(s string) *strings.Reader { return strings.NewReader(s) }

func TestAMachineThatIsPoweredOnRunsItsGuestAndReportsAnAddress(t *testing.T) {
	w := newWorld(t)
	w.tell(vcenter.Created, "", nil)
	w.until("created", powerIs("poweredOff"))
	w.tell(vcenter.PoweredOn, running+"\nstray output", nil)
	got := w.until("running", phaseIs("running"))
	want := state.Machine{
		Ref: "vm-1", Name: "node-1", UUID: "u-1", Power: "poweredOn", Address: "127.127.16.1", KubernetesVersion: "v1.37.2",
		Guest: got.Guest, Phase: "running", Message: "up",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("machine (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(vcenter.Tools{Running: true, Address: "127.127.16.1", HostName: "node-1"}, w.vCenter.reported(ref)); diff != "" {
		t.Errorf("reported (-want +got):\n%s", diff)
	}
	w.tell(vcenter.PoweredOff, "", nil)
	w.until("off", powerIs("poweredOff"))
	console, err := os.ReadFile(w.dir.MachineLog("node-1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"guest node-1 boots", "stray output", "power off"} {
		if !strings.Contains(string(console), line) {
			t.Errorf("the console lacks %q:\n%s", line, console)
		}
	}
	if got := w.vCenter.reported(ref); got != (vcenter.Tools{}) {
		t.Errorf("a machine that is off reports %+v", got)
	}
}

func TestPowerOffEndsTheGuestWithAllItsChildren(t *testing.T) {
	w := newWorld(t)
	w.tell(vcenter.PoweredOn, "deaf\nchild", nil)
	m := w.until("with a child", phaseIs("child"))
	pid, err := strconv.Atoi(m.Message)
	if err != nil {
		t.Fatal(err)
	}
	child, err := process.Identify(pid)
	if err != nil {
		t.Fatal(err)
	}
	w.tell(vcenter.PoweredOff, "", nil)
	w.until("off", powerIs("poweredOff"))
	if m.Guest.Alive() || !child.WaitGone(5*time.Second) {
		t.Errorf("guest alive %v, child alive %v after power off", m.Guest.Alive(), child.Alive())
	}
}

func TestAPowerCycleKeepsDiskAndAddressAndDestroyTakesThemAway(t *testing.T) {
	w := newWorld(t)
	for range 2 {
		w.tell(vcenter.PoweredOn, running, nil)
		w.until("running", phaseIs("running"))
		w.tell(vcenter.PoweredOff, "", nil)
		w.until("off", powerIs("poweredOff"))
	}
	if diff := cmp.Diff("127.127.16.1\n127.127.16.1\n", w.boots()); diff != "" {
		t.Errorf("boots (-want +got):\n%s", diff)
	}
	w.tell(vcenter.Removed, "", nil)
	w.until("gone", powerIs(""))
	if got := w.boots(); got != "" {
		t.Error("the disk of a destroyed machine is still there")
	}
	w.tell(vcenter.PoweredOn, running, nil)
	if m := w.until("running", phaseIs("running")); m.Address == "127.127.16.1" {
		t.Error("a new machine has the address of the one before at once")
	}
}

func TestAGuestThatIsAskedToShutDownDoesBeforeThePowerIsOff(t *testing.T) {
	w := newWorld(t)
	w.tell(vcenter.PoweredOn, running, nil)
	m := w.until("running", phaseIs("running"))
	done := make(chan bool, 1)
	w.tell(vcenter.ShutdownAsked, running, func() { done <- m.Guest.Alive() })
	select {
	case alive := <-done:
		if alive {
			t.Error("the power goes off while the guest still runs")
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the shutdown never completes")
	}
}

func TestAGuestThatIsAskedToRebootBootsAgain(t *testing.T) {
	w := newWorld(t)
	w.tell(vcenter.PoweredOn, running, nil)
	first := w.until("running", phaseIs("running"))
	w.tell(vcenter.RebootAsked, running, nil)
	w.until("running again", func(m state.Machine) bool { return m.Phase == "running" && m.Guest != first.Guest })
	if diff := cmp.Diff("127.127.16.1\n127.127.16.1\n", w.boots()); diff != "" {
		t.Errorf("boots (-want +got):\n%s", diff)
	}
}

func TestAGuestThatCrashesLeavesItsMachinePoweredOn(t *testing.T) {
	w := newWorld(t)
	w.tell(vcenter.PoweredOn, "exit", nil)
	m := w.until("crashed", phaseIs("crashed"))
	if m.Power != "poweredOn" || !strings.Contains(m.Message, "exit status 3") {
		t.Errorf("machine %+v", m)
	}
	if got := w.vCenter.reported(ref); got.Running {
		t.Errorf("the crashed guest reports %+v", got)
	}
}

func TestTheLastWordsOfAGuestThatGaveUpAreKept(t *testing.T) {
	w := newWorld(t)
	w.tell(vcenter.PoweredOn, `{"event":"phase","phase":"failed","message":"token expired"}`+"\nexit", nil)
	m := w.until("ended", func(m state.Machine) bool { return m.Phase == "failed" && m.Guest.PID == 0 })
	if m.Message != "token expired" {
		t.Errorf("message %q", m.Message)
	}
}

func TestAMachineWhoseProgramsCannotBeBuiltFailsWithTheReason(t *testing.T) {
	w := newWorld(t)
	w.err = errors.New("the sandbox has no Kubernetes v9.9.9")
	w.tell(vcenter.PoweredOn, running, nil)
	m := w.until("failed", phaseIs("failed"))
	if m.Message != w.err.Error() {
		t.Errorf("message %q", m.Message)
	}
}

func TestAVirtualAddressIsHeldAsLongAsItsGuestLives(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(free.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	free.Close()
	w := newWorld(t)
	w.tell(vcenter.PoweredOn, `{"event":"vip","address":"127.0.0.1","port":`+port+`,"backend":"127.127.16.1:6443","up":true}`+"\n"+running, nil)
	m := w.until("running", phaseIs("running"))
	want := []state.Endpoint{{Address: "127.0.0.1:" + port, Backends: []string{"127.127.16.1:6443"}}}
	if diff := cmp.Diff(want, w.store.Get().Endpoints); diff != "" {
		t.Errorf("endpoints (-want +got):\n%s", diff)
	}
	if err := m.Guest.SignalGroup(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	w.until("crashed", phaseIs("crashed"))
	if got := w.store.Get().Endpoints; len(got) != 0 {
		t.Errorf("a dead guest holds %v", got)
	}
}

func TestASuspendedMachineStandsStillAndGoesOn(t *testing.T) {
	w := newWorld(t)
	w.tell(vcenter.PoweredOn, running, nil)
	first := w.until("running", phaseIs("running"))
	w.tell(vcenter.Suspended, running, nil)
	w.until("suspended", powerIs("suspended"))
	w.tell(vcenter.PoweredOn, running, nil)
	if again := w.until("on", powerIs("poweredOn")); again.Guest != first.Guest {
		t.Errorf("the guest was %v and is %v", first.Guest, again.Guest)
	}
}
