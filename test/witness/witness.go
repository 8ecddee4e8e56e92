package witness

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Store is where keys are written to.
type Store interface {
	// Write writes a key that was never written before; nil acknowledges it.
	Write(ctx context.Context, key string) error
	// Keys lists the keys that there are.
	Keys(ctx context.Context) ([]string, error)
}

// patience bounds one write: an answer that is later helps nobody who waits for it. What becomes of the key is open then.
const patience = 2 * time.Second

// Witness writes until it is stopped.
type Witness struct {
	store  Store
	cancel context.CancelFunc
	done   chan struct{}
	report Report
	acked  []string
}

// Report is what a Witness saw.
type Report struct {
	// Acknowledged and Failed count the writes.
	Acknowledged, Failed int
	// Silence is the longest time between two acknowledgements, from the start and to the end.
	Silence time.Duration
	// LastError is why the last write that failed did.
	LastError error
}

// String tells the report in a line.
func (r Report) String() string {
	text := fmt.Sprintf("%d writes acknowledged, %d failed, none acknowledged for %s at most", r.Acknowledged, r.Failed, r.Silence.Round(time.Millisecond))
	if r.LastError != nil {
		text += fmt.Sprintf(" (the last failure: %v)", r.LastError)
	}
	return text
}

// Start begins to write a key in each period. A write that takes longer delays the next.
func Start(store Store, period time.Duration) *Witness {
	ctx, cancel := context.WithCancel(context.Background())
	w := &Witness{store: store, cancel: cancel, done: make(chan struct{})}
	go w.run(ctx, period)
	return w
}

func (w *Witness) run(ctx context.Context, period time.Duration) {
	defer close(w.done)
	tick := time.NewTicker(period)
	defer tick.Stop()
	last := time.Now()
	quiet := func(now time.Time) { w.report.Silence = max(w.report.Silence, now.Sub(last)) }
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			quiet(time.Now())
			return
		case <-tick.C:
		}
		key := fmt.Sprintf("key-%07d", n)
		// A write under way ends by itself: one that was called off would be neither lost nor kept.
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		err := w.store.Write(bounded, key)
		cancel()
		if err != nil {
			w.report.Failed++
			w.report.LastError = err
			continue
		}
		now := time.Now()
		quiet(now)
		last = now
		w.report.Acknowledged++
		w.acked = append(w.acked, key)
	}
}

// Stop ends the writing and returns what was seen. It may be called again.
func (w *Witness) Stop() Report {
	w.cancel()
	<-w.done
	return w.report
}

// Lost stops and returns the acknowledged keys that the store does not have. A key that is there unacknowledged is no fault.
func (w *Witness) Lost(ctx context.Context) ([]string, error) {
	w.Stop()
	keys, err := w.store.Keys(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the keys that were written: %w", err)
	}
	slices.Sort(keys)
	var lost []string
	for _, key := range w.acked {
		if _, ok := slices.BinarySearch(keys, key); !ok {
			lost = append(lost, key)
		}
	}
	return lost, nil
}
