package apply

import (
	"context"
	"errors"
	"testing"
)

func TestAnApplyThatWasCutShortIsNotDone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (&Engine{}).settle(ctx, &Plan{}, nil, false); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context: the record was not written", err)
	}
}
