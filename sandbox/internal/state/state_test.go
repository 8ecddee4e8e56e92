package state

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func open(t *testing.T) Dir {
	t.Helper()
	dir, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestASandboxIsRemovedButForItsLogs(t *testing.T) {
	dir := open(t)
	if err := dir.Create(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir.Kubeconfig(), dir.Log("operator"), dir.MachineLog("node-1"), filepath.Join(dir.Etcd(), "db")} {
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := dir.Clear(); err != nil {
		t.Fatal(err)
	}
	for path, kept := range map[string]bool{
		dir.Kubeconfig(): false, dir.Etcd(): false, dir.Pids(): false, dir.Log("operator"): true, dir.MachineLog("node-1"): true,
	} {
		if _, err := os.Stat(path); (err == nil) != kept {
			t.Errorf("%s: there %v, want %v", path, err == nil, kept)
		}
	}
}

func TestADirectoryOfSomebodyElseIsLeftAlone(t *testing.T) {
	dir := open(t)
	precious := dir.Path("thesis.tex")
	if err := os.WriteFile(precious, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := dir.Clear(); err == nil {
		t.Error("Clear takes any directory for a sandbox")
	}
	if _, err := os.Stat(precious); err != nil {
		t.Error(err)
	}
}

func TestWithoutASandboxThatIsWhatLoadSays(t *testing.T) {
	if _, err := open(t).Load(); !errors.Is(err, ErrNone) {
		t.Errorf("Load() error = %v, want ErrNone", err)
	}
}

func TestEverythingIsListedOnceUnderItsName(t *testing.T) {
	dir := open(t)
	store, err := NewStore(dir, State{})
	if err != nil {
		t.Fatal(err)
	}
	store.SetMachine(Machine{Ref: "vm-1", Name: "a", Power: "poweredOff"})
	store.SetMachine(Machine{Ref: "vm-2", Name: "a"})
	store.SetMachine(Machine{Ref: "vm-1", Name: "a", Power: "poweredOn"})
	store.RemoveMachine("vm-2")
	store.SetEndpoint(Endpoint{Address: "127.70.0.10:6443", Backends: []string{"b"}})
	store.SetEndpoint(Endpoint{Address: "127.70.0.11:6443", Backends: []string{"b"}})
	store.SetEndpoint(Endpoint{Address: "127.70.0.10:6443"})
	want := State{
		Machines:  []Machine{{Ref: "vm-1", Name: "a", Power: "poweredOn"}},
		Endpoints: []Endpoint{{Address: "127.70.0.11:6443", Backends: []string{"b"}}},
	}
	if diff := cmp.Diff(want, store.Get()); diff != "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}
}
