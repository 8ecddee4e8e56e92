package machineset

import (
	"errors"
	"sync"
)

// inBatches calls do for every item: one first, then two at once, four, and so on, and stops after a batch in which one
// failed. What fails for one machine mostly fails for all: this way a thousand of them cost one refused request.
// It returns the results of the calls that succeeded and the errors of the last batch.
func inBatches[T, R any](items []T, do func(T) (R, error)) ([]R, error) {
	var done []R
	for size := 1; len(items) > 0; size *= 2 {
		batch := items[:min(size, len(items))]
		items = items[len(batch):]
		results, errs := make([]R, len(batch)), make([]error, len(batch))
		var wg sync.WaitGroup
		for i, item := range batch {
			wg.Go(func() { results[i], errs[i] = do(item) })
		}
		wg.Wait()
		for i := range batch {
			if errs[i] == nil {
				done = append(done, results[i])
			}
		}
		if err := errors.Join(errs...); err != nil {
			return done, err
		}
	}
	return done, nil
}
