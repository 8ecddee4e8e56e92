package process

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

func newRunner(t *testing.T) (*Runner, Records) {
	t.Helper()
	dir := t.TempDir()
	return NewRunner(dir), Records(dir)
}

func start(t *testing.T, r *Runner, script string) *Process {
	t.Helper()
	p, err := r.Start(Spec{Name: "program", Path: "/bin/sh", Args: []string{"-c", script}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Kill() })
	return p
}

func waitDone(t *testing.T, p *Process) {
	t.Helper()
	select {
	case <-p.Done():
	case <-time.After(10 * time.Second):
		t.Fatal("the process does not end")
	}
}

func TestAPidThatBelongsToSomebodyElseIsNeverSignalled(t *testing.T) {
	r, _ := newRunner(t)
	p := start(t, r, "sleep 600")
	stale := Identity{PID: p.PID, Start: "another boot/1"}
	if stale.Alive() {
		t.Fatal("a pid alone passes for an identity")
	}
	if err := stale.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := stale.SignalGroup(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if !p.Alive() {
		t.Fatal("a stale record ended a stranger")
	}
	if (Identity{PID: p.PID}).Alive() || (Identity{}).Alive() {
		t.Error("an identity without a start time is alive")
	}
}

func TestAProcessEndsWithItsWholeGroup(t *testing.T) {
	r, _ := newRunner(t)
	pidfile := filepath.Join(t.TempDir(), "child")
	p := start(t, r, "sleep 600 & echo $! > "+pidfile+".next; mv "+pidfile+".next "+pidfile+"; wait")
	child := waitForPid(t, pidfile)
	// The leader alone dies; what it has left goes with it.
	if err := p.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	waitDone(t, p)
	if !child.WaitGone(5 * time.Second) {
		t.Error("the child survives its group's leader")
	}
}

func waitForPid(t *testing.T, file string) Identity {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		var pid int
		data, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if _, err := fmt.Sscan(string(data), &pid); err != nil {
			t.Fatal(err)
		}
		id, err := Identify(pid)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	t.Fatalf("no pid in %s", file)
	return Identity{}
}

func TestARecordLivesAsLongAsItsProcess(t *testing.T) {
	r, records := newRunner(t)
	p := start(t, r, "sleep 600")
	list, err := records.List()
	if err != nil || len(list) != 1 || list[0].Identity != p.Identity {
		t.Fatalf("records %+v, error %v, want that of pid %d", list, err, p.PID)
	}
	if err := p.Terminate(); err != nil {
		t.Fatal(err)
	}
	waitDone(t, p)
	if list, err := records.List(); err != nil || len(list) != 0 {
		t.Errorf("records %+v, error %v after the end", list, err)
	}
}

func TestWhatACrashLeftIsEndedAndNothingElse(t *testing.T) {
	r, records := newRunner(t)
	left := start(t, r, "trap '' TERM; sleep 600 & wait")
	stranger := startStranger(t)
	for _, rec := range []Record{
		{Name: "left", Identity: left.Identity, Group: true},
		{Name: "stale", Identity: Identity{PID: stranger.PID, Start: "long ago"}, Group: true},
	} {
		if err := records.Put(rec); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(string(records), "half.json"), []byte(`{"pid":`), 0o600); err != nil {
		t.Fatal(err)
	}
	killed, err := records.KillAll(10 * time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if left.Alive() || !stranger.Alive() {
		t.Errorf("left alive %v, stranger alive %v; killed %v", left.Alive(), stranger.Alive(), killed)
	}
}

// startStranger starts a process that another Runner keeps the records of.
func startStranger(t *testing.T) *Process {
	t.Helper()
	r, _ := newRunner(t)
	return start(t, r, "sleep 600")
}

func TestAProgramThatDiesIsBackWithinASecond(t *testing.T) {
	r, _ := newRunner(t)
	ctx, cancel := context.WithCancel(context.Background())
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	reports := make(chan Status, 100)
	var supervisor sync.WaitGroup
	supervisor.Go(func() {
		r.Supervise(ctx, func() (Spec, error) {
			return Spec{Name: "program", Path: "/bin/sh", Args: []string{"-c", "sleep 600"}}, nil
		}, log, time.Second, func(s Status) { reports <- s })
	})
	next := func(running bool) Status {
		t.Helper()
		for {
			select {
			case s := <-reports:
				if s.Running == running {
					return s
				}
			case <-time.After(10 * time.Second):
				t.Fatalf("never running=%v", running)
			}
		}
	}
	first := next(true)
	var last Status
	for range 5 {
		if err := first.SignalGroup(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		last = next(true)
		first = last
	}
	if last.Restarts != 5 || last.LastExit != "program ended: signal: killed" {
		t.Errorf("status %+v", last)
	}
	cancel()
	supervisor.Wait()
	if end := next(false); end.Alive() {
		t.Error("the program outlives its supervisor")
	}
}

func TestAProgramThatDoesNotEndWhenAskedIsEnded(t *testing.T) {
	r, _ := newRunner(t)
	pidfile := filepath.Join(t.TempDir(), "ready")
	p := start(t, r, "trap '' TERM; echo $$ > "+pidfile+".next; mv "+pidfile+".next "+pidfile+"; while :; do sleep 1; done")
	waitForPid(t, pidfile)
	p.Stop(50 * time.Millisecond)
	if p.Alive() {
		t.Error("it is still there")
	}
}
