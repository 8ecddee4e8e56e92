package cli

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// TimeoutError tells that a command stopped waiting. What it waited for goes on
// without it.
type TimeoutError struct {
	After time.Duration
	// Missing is what had not come about, in a sentence without a full stop; empty
	// where nothing was waited for.
	Missing string
}

func (e *TimeoutError) Error() string {
	if e.Missing == "" {
		return fmt.Sprintf("timed out after %s", e.After)
	}
	return fmt.Sprintf("timed out after %s: %s", e.After, e.Missing)
}

// State is what a waiting command sees of the world.
type State struct {
	Done bool
	// Missing says what is still waited for, and why; it goes into the TimeoutError.
	Missing string
	View    View
}

// Wait shows and checks the state whenever changed fires, until it is done, check
// fails, or timeout (zero waits for ever) has passed, which is a *TimeoutError.
func Wait(ctx context.Context, timeout time.Duration, changed <-chan struct{}, progress *Progress, check func() (State, error)) error {
	defer progress.Close()
	waiting := ctx
	if timeout > 0 {
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	for {
		state, err := check()
		if err != nil {
			return err
		}
		progress.Show(state.View)
		if state.Done {
			return nil
		}
		select {
		case <-changed:
		case <-progress.Tick():
		case <-waiting.Done():
			if err := ctx.Err(); err != nil {
				return err
			}
			if !errors.Is(waiting.Err(), context.DeadlineExceeded) {
				return waiting.Err()
			}
			return &TimeoutError{After: timeout, Missing: state.Missing}
		}
	}
}
