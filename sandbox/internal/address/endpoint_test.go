package address

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
)

func TestNoTwoClustersGetOneEndpoint(t *testing.T) {
	file := filepath.Join(t.TempDir(), "endpoints.json")
	var mu sync.Mutex
	given := map[string]bool{}
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			a, err := TakeEndpoint(context.Background(), file, 70)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			given[a] = true
		})
	}
	all.Wait()
	if len(given) != 10 || !given["127.70.0.10"] || !given["127.70.0.19"] {
		t.Errorf("given: %v", given)
	}
}

func TestABlockIsReadBack(t *testing.T) {
	for _, b := range []Block{firstBlock, lastBlock} {
		if got, err := ParseBlock(b.String()); err != nil || got != b {
			t.Errorf("ParseBlock(%q) = %v, %v", b.String(), got, err)
		}
	}
	if b, err := ParseBlock(""); err == nil {
		t.Errorf("ParseBlock(\"\") = %v", b)
	}
}
