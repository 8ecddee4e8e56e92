package sandboxtest

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
)

// KillOperator ends (SIGKILL) the operator that the sandbox started after the process last, and returns its process;
// 0 kills whichever runs.
func (s *Sandbox) KillOperator(t *testing.T, last int) int {
	t.Helper()
	pid := 0
	Eventually(t, time.Minute, func() string {
		if pid = s.operatorPID(t); pid == 0 || pid == last {
			return "the operator was not restarted"
		}
		return ""
	})
	kill(t, pid)
	return pid
}

// KillGuest ends (SIGKILL) what runs in a virtual machine, which stays powered on: a machine that has crashed.
func (s *Sandbox) KillGuest(t *testing.T, machine string) {
	t.Helper()
	for _, m := range s.status(t).Machines {
		if m.Name == machine && m.Guest.PID != 0 {
			kill(t, m.Guest.PID)
			return
		}
	}
	t.Fatalf("the sandbox runs no guest in the virtual machine %q", machine)
}

// Disk returns the folder that is the root of a virtual machine's disk.
func (s *Sandbox) Disk(t *testing.T, machine string) string {
	t.Helper()
	for _, m := range s.status(t).Machines {
		if m.Name == machine {
			return filepath.Join(s.Dir, "vms", m.UUID, "root")
		}
	}
	t.Fatalf("the sandbox has no virtual machine %q", machine)
	return ""
}

// Reset pulls the plug of a virtual machine and switches it on again: it boots from its disk.
func (s *Sandbox) Reset(t *testing.T, machine string) {
	t.Helper()
	client := s.vcenter(t)
	defer client.Logout(context.WithoutCancel(t.Context()))
	vm, err := find.NewFinder(client.Client, false).VirtualMachine(t.Context(), s.VSphere["VSPHERE_FOLDER"]+"/"+machine)
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range []func(context.Context) (*object.Task, error){vm.PowerOff, vm.PowerOn} {
		task, err := change(t.Context())
		if err == nil {
			err = task.Wait(t.Context())
		}
		if err != nil {
			t.Fatalf("reset virtual machine %q: %v", machine, err)
		}
	}
}

// HolderOf names the virtual machine that answers at the control-plane address of a cluster, and all others that could.
func (s *Sandbox) HolderOf(t *testing.T, endpoint string) (holder string, others []string) {
	t.Helper()
	now := s.status(t)
	name := map[string]string{}
	for _, m := range now.Machines {
		name[m.Address] = m.Name
	}
	for _, e := range now.Endpoints {
		if host, _, _ := net.SplitHostPort(e.Address); host != endpoint {
			continue
		}
		for _, backend := range e.Backends {
			host, _, _ := net.SplitHostPort(backend)
			others = append(others, name[host])
		}
	}
	if len(others) == 0 {
		return "", nil
	}
	return others[0], others[1:]
}

// operatorPID returns the process of the operator that runs now, or 0.
func (s *Sandbox) operatorPID(t *testing.T) int {
	t.Helper()
	for _, program := range s.status(t).Programs {
		if program.Name == "operator" && program.Running {
			return program.PID
		}
	}
	return 0
}

// status is what `sandbox status` tells of processes.
type status struct {
	Programs []struct {
		Name    string `json:"name"`
		PID     int    `json:"pid"`
		Running bool   `json:"running"`
	} `json:"programs"`
	Machines []struct {
		Name    string `json:"name"`
		UUID    string `json:"uuid"`
		Address string `json:"address"`
		Guest   struct {
			PID int `json:"pid"`
		} `json:"guest"`
	} `json:"machines"`
	Endpoints []struct {
		Address  string   `json:"address"`
		Backends []string `json:"backends"`
	} `json:"endpoints"`
}

func (s *Sandbox) status(t *testing.T) status {
	t.Helper()
	var out status
	if err := json.Unmarshal([]byte(s.Run(t, "sandbox", "status", "--dir", s.Dir, "-o", "json")), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func kill(t *testing.T, pid int) {
	t.Helper()
	process, err := os.FindProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Signal(syscall.SIGKILL); err != nil {
		t.Fatalf("kill process %d: %v", pid, err)
	}
}
