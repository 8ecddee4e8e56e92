package witness

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// memory is a Store that fails, is silent or forgets as it is told; calls are numbered from 0.
type memory struct {
	keys  []string
	calls int
	// fails and hangs say what a call does; forgets what is acknowledged and not kept; hides what is kept and not acknowledged.
	fails, hangs, forgets, hides func(call int) bool
}

func (m *memory) Write(ctx context.Context, key string) error {
	call := m.calls
	m.calls++
	is := func(what func(int) bool) bool { return what != nil && what(call) }
	switch {
	case is(m.fails):
		return errors.New("refused")
	case is(m.hangs):
		<-ctx.Done()
		return ctx.Err()
	case is(m.forgets):
		return nil
	}
	m.keys = append(m.keys, key)
	if is(m.hides) {
		return errors.New("the answer was lost")
	}
	return nil
}

func (m *memory) Keys(context.Context) ([]string, error) { return m.keys, nil }

func between(from, to int) func(int) bool { return func(n int) bool { return n >= from && n < to } }

func TestAWitnessTellsWhatWasLostAndForHowLongNothingWasAcknowledged(t *testing.T) {
	const period = 100 * time.Millisecond
	tests := map[string]struct {
		store *memory
		runs  time.Duration

		wantAcknowledged, wantFailed int
		wantSilence                  time.Duration
		wantLost                     []string
	}{
		"a store that is always there": {
			store: &memory{}, runs: 1050 * time.Millisecond,
			wantAcknowledged: 10, wantSilence: period,
		},
		"one that refuses for half a second": {
			store: &memory{fails: between(3, 8)}, runs: 1050 * time.Millisecond,
			wantAcknowledged: 5, wantFailed: 5, wantSilence: 6 * period,
		},
		"one that does not answer once": {
			store: &memory{hangs: between(1, 2)}, runs: 2950 * time.Millisecond,
			wantAcknowledged: 9, wantFailed: 1, wantSilence: patience + period,
		},
		"one that never acknowledges": {
			store: &memory{fails: between(0, 100)}, runs: 550 * time.Millisecond,
			wantFailed: 5, wantSilence: 550 * time.Millisecond,
		},
		"one that forgets": {
			store: &memory{forgets: between(2, 4)}, runs: 1050 * time.Millisecond,
			wantAcknowledged: 10, wantSilence: period, wantLost: []string{"key-0000002", "key-0000003"},
		},
		"one whose answer does not arrive": {
			store: &memory{hides: between(2, 3)}, runs: 1050 * time.Millisecond,
			wantAcknowledged: 9, wantFailed: 1, wantSilence: 2 * period,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := Start(tc.store, period)
				// Time here is the bubble's: it passes when everybody waits.
				time.Sleep(tc.runs)
				got := w.Stop()
				got.LastError = nil
				want := Report{Acknowledged: tc.wantAcknowledged, Failed: tc.wantFailed, Silence: tc.wantSilence}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("report (-want +got):\n%s", diff)
				}
				lost, err := w.Lost(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tc.wantLost, lost); diff != "" {
					t.Errorf("lost (-want +got):\n%s", diff)
				}
			})
		})
	}
}
