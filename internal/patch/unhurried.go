package patch

import (
	"context"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Unhurried writes status that may wait a little for more: an object on its way passes many stations, and most of them
// are over before anybody could read of them. What lasts is written, so a stuck object says why.
type Unhurried struct {
	// Delay is how long news may wait.
	Delay time.Duration
	// Each is how much longer it may, for each object that has news: a thousand objects on their way are not written all
	// at once, nor as often as a few.
	Each time.Duration

	mu    sync.Mutex
	since map[client.ObjectKey]time.Time
}

// Patch writes metadata and spec at once, and status when it has differed from what is stored for long enough. The result is
// when to come again to write what still waits; zero when nothing does.
func (u *Unhurried) Patch(ctx context.Context, h *Helper, obj client.Object) (time.Duration, error) {
	more, err := h.PatchButStatus(ctx, obj)
	if err != nil {
		return 0, err
	}
	key := client.ObjectKeyFromObject(obj)
	if !more {
		u.Forget(key)
		return 0, nil
	}
	if left := u.left(key, time.Now()); left > 0 {
		return left, nil
	}
	return 0, u.PatchNow(ctx, h, obj)
}

// PatchNow writes everything.
func (u *Unhurried) PatchNow(ctx context.Context, h *Helper, obj client.Object) error {
	u.Forget(client.ObjectKeyFromObject(obj))
	return h.Patch(ctx, obj)
}

// Forget drops what is remembered of an object, for one that is gone.
func (u *Unhurried) Forget(key client.ObjectKey) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.since, key)
}

// left is how long the news of an object may still wait. The first call starts the wait.
func (u *Unhurried) left(key client.ObjectKey, now time.Time) time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	since, waits := u.since[key]
	if !waits {
		if u.since == nil {
			u.since = map[client.ObjectKey]time.Time{}
		}
		u.since[key], since = now, now
	}
	return since.Add(u.Delay + time.Duration(len(u.since))*u.Each).Sub(now)
}
