package staticpod

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// LogDir is where the logs of containers lie on the guest.
const LogDir = "/var/log/containers"

// How long a component may take to end at most, when its manifest goes or is
// replaced, and when its machine is switched off: kube-apiserver waits for its
// watchers, whom that does not help.
const (
	replaceGrace  = 10 * time.Second
	powerOffGrace = 2 * time.Second
)

// lookEvery is how often the folder's entries are looked at, rescan how often its
// files are read without a sign of change (a kubelet's fileCheckFrequency).
const (
	lookEvery = 250 * time.Millisecond
	rescan    = 20 * time.Second
)

// Manager runs the static pods of one manifest folder.
type Manager struct {
	host    Host
	log     func(format string, args ...any)
	spawner *spawner

	mu          sync.Mutex
	components  map[string]*component
	subscribers []chan struct{}
}

// NewManager returns a manager that runs nothing yet. log writes to the guest's
// console.
func NewManager(host Host, log func(format string, args ...any)) *Manager {
	return &Manager{host: host, log: log, components: map[string]*component{}}
}

// Subscribe returns a channel that receives after any pod's state changed;
// several changes may be one.
func (m *Manager) Subscribe() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	changed := make(chan struct{}, 1)
	m.subscribers = append(m.subscribers, changed)
	return changed
}

func (m *Manager) notify() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, changed := range m.subscribers {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
}

// States lists the pods by name.
func (m *Manager) States() []State {
	m.mu.Lock()
	defer m.mu.Unlock()
	var states []State
	for _, name := range slices.Sorted(maps.Keys(m.components)) {
		states = append(states, m.components[name].snapshot())
	}
	return states
}

// Run follows the manifest folder until the context ends, then stops everything.
// It looks instead of being told: an inotify instance for each guest would use up
// a host's (128 by default).
func (m *Manager) Run(ctx context.Context, folder string) error {
	path := m.host.Root.Path(folder)
	if err := os.MkdirAll(path, 0o755); err != nil {
		return fmt.Errorf("static pod path %s: %w", folder, err)
	}
	m.spawner = newSpawner()
	defer m.spawner.close()
	defer m.stopAll()

	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var seen, done string
	var read time.Time
	for {
		now := fingerprint(path)
		// A file that is being written differs from look to look: wait for its end.
		settled := now == seen && now != done
		if seen = now; settled || time.Since(read) > rescan {
			m.reconcile(ctx, folder)
			done, read = now, time.Now()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// fingerprint changes when a file of the folder does.
func fingerprint(path string) string {
	entries, err := os.ReadDir(path)
	if err != nil {
		return err.Error()
	}
	var out strings.Builder
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil {
			fmt.Fprintln(&out, info.Name(), info.Size(), info.ModTime().UnixNano())
		}
	}
	return out.String()
}

// reconcile starts, replaces and stops components until they are those of the
// folder.
func (m *Manager) reconcile(ctx context.Context, folder string) {
	manifests, err := Load(m.host.Root, folder)
	if err != nil {
		m.log("%v", err)
	}
	wanted := map[string]Manifest{}
	for _, manifest := range manifests {
		wanted[manifest.Pod.Name] = manifest
	}
	m.mu.Lock()
	var stale []*component
	for name, c := range m.components {
		manifest, keep := wanted[name]
		// A file that cannot be read now may be one that is being written.
		if keep && manifest.Hash == c.snapshot().Hash || !keep && err != nil {
			delete(wanted, name)
			continue
		}
		stale = append(stale, c)
		delete(m.components, name)
	}
	m.mu.Unlock()
	stop(stale, replaceGrace)

	m.mu.Lock()
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		m.components[name] = m.begin(ctx, wanted[name])
	}
	m.mu.Unlock()
	if len(stale)+len(wanted) > 0 {
		m.notify()
	}
}

func (m *Manager) begin(ctx context.Context, manifest Manifest) *component {
	_, known := Component(manifest.Pod)
	c := &component{manager: m, done: make(chan struct{}), state: State{
		Manifest: manifest, Process: known, Waiting: "ContainerCreating",
		Log: filepath.Join(m.host.Root.Path(LogDir), manifest.Pod.Name+".log"),
	}}
	if !known {
		m.log("Static pod %s is recorded, not run", manifest.Pod.Name)
		c.state.Running, c.state.Started, c.state.Ready, c.state.Live = true, true, true, true
		c.state.StartedAt, c.state.Waiting = time.Now(), ""
		c.cancel = func() {}
		close(c.done)
		return c
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c.cancel = cancel
	go c.run(running)
	return c
}

func (m *Manager) stopAll() {
	m.mu.Lock()
	all := slices.Collect(maps.Values(m.components))
	m.components = map[string]*component{}
	m.mu.Unlock()
	stop(all, powerOffGrace)
}

// stop ends components all at once and waits for them; longest is what each may
// take at most before it is killed.
func stop(list []*component, longest time.Duration) {
	for _, c := range list {
		c.longest = longest
		c.cancel()
	}
	for _, c := range list {
		<-c.done
	}
}
