package machineset

import (
	"errors"
	"sync/atomic"
	"testing"
)

func TestBatchesStopAfterTheFirstFailure(t *testing.T) {
	items := make([]int, 100)
	for i := range items {
		items[i] = i
	}
	cases := map[string]struct {
		failAt            int
		wantCalls, wantOK int
	}{
		"none fails":      {failAt: -1, wantCalls: 100, wantOK: 100},
		"the first fails": {failAt: 0, wantCalls: 1, wantOK: 0},
		"one of the third batch fails, its siblings were asked": {failAt: 4, wantCalls: 7, wantOK: 6},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int32
			done, err := inBatches(items, func(item int) (int, error) {
				calls.Add(1)
				if item == tc.failAt {
					return 0, errors.New("refused")
				}
				return item, nil
			})
			if int(calls.Load()) != tc.wantCalls || len(done) != tc.wantOK || (err != nil) != (tc.failAt >= 0) {
				t.Errorf("%d calls, %d succeeded, error %v; want %d calls, %d successes", calls.Load(), len(done), err, tc.wantCalls, tc.wantOK)
			}
		})
	}
}
