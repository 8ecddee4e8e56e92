package vcenter

import (
	"strings"
	"testing"
	"time"

	"github.com/millwright-dev/millwright/internal/vcenter/vcentertest"
)

func endpoint(v *vcentertest.Server) Endpoint {
	return Endpoint{Server: v.Host(), Thumbprint: v.Thumbprint(), Username: vcentertest.Username, Password: vcentertest.Password}
}

// newTestPool returns a pool whose changes arrive on the channel.
func newTestPool(t *testing.T, opts Options) (*Pool, <-chan string) {
	t.Helper()
	opts.watchWait = 2 * time.Second
	pool := NewPool(opts)
	t.Cleanup(pool.Close)
	changes := make(chan string, 1000)
	pool.OnChange(func(owner string) { changes <- owner })
	return pool, changes
}

func newTestSession(t *testing.T, v *vcentertest.Server, pool *Pool) *Session {
	t.Helper()
	s, err := pool.Session(t.Context(), "default/cluster", endpoint(v))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func request(name string) CloneRequest {
	return CloneRequest{
		Name: name, InstanceUUID: "0123abcd-0000-4000-8000-" + strings.Repeat("0", 12-len(name)) + hexOf(name),
		Template: vcentertest.Template, ResourcePool: vcentertest.ResourcePool,
		Networks: []CloneNetwork{{Name: vcentertest.Network}},
	}
}

// hexOf keeps names of the letters a to f and digits distinct in a UUID.
func hexOf(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("0123456789abcdef", r) {
			return r
		}
		return '0'
	}, name)
}

// eventually calls f until it returns true.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	deadline := time.After(15 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !f() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("gave up waiting until %s", what)
		}
	}
}

// ended waits for the end of the task of owner and returns it.
func ended(t *testing.T, s *Session, owner string) *Task {
	t.Helper()
	var task *Task
	eventually(t, "the task of "+owner+" ends", func() bool {
		task = s.Task(owner)
		return task != nil && task.State != TaskRunning
	})
	s.ClearTask(owner)
	return task
}

// cloned makes a virtual machine from start to end.
func cloned(t *testing.T, s *Session, owner string, r CloneRequest) *VM {
	t.Helper()
	plan, err := s.PrepareClone(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Clone(t.Context(), owner, plan); err != nil {
		t.Fatal(err)
	}
	if task := ended(t, s, owner); task.Err != nil {
		t.Fatal(task.Err)
	}
	vm, err := s.FindVM(t.Context(), Identity{InstanceUUID: r.InstanceUUID})
	if err != nil {
		t.Fatal(err)
	}
	return vm
}
