package controlplane

import (
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// doubts remembers since when a part of a connected control plane could not be read. A member in an
// election or a request that timed out is no news: conditions must not flap.
type doubts struct {
	mu    sync.Mutex
	since map[client.ObjectKey]time.Time
}

// young tells whether something could not be read, but not for long yet.
func (d *doubts) young(s *snapshot, now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := client.ObjectKeyFromObject(s.controlPlane)
	if !s.workload.connected || (s.workload.etcdErr == nil && len(s.workload.failures) == 0) {
		delete(d.since, key)
		return false
	}
	if d.since == nil {
		d.since = map[client.ObjectKey]time.Time{}
	}
	if d.since[key].IsZero() {
		d.since[key] = now
	}
	return now.Sub(d.since[key]) < doubtFor
}

// forget drops what is remembered of a control plane that is gone.
func (d *doubts) forget(controlPlane client.ObjectKey) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.since, controlPlane)
}
