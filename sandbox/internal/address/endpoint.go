package address

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/millwright-dev/millwright/sandbox/internal/filelock"
)

// TakeEndpoint hands out the next control-plane endpoint address of a block,
// each to one caller in whatever process. file remembers how many there were.
func TakeEndpoint(ctx context.Context, file string, block Block) (string, error) {
	lock, err := filelock.Acquire(ctx, file+".lock", nil)
	if err != nil {
		return "", err
	}
	defer lock.Release()
	var given []string
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, &given)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("read the endpoints given so far from %s: %w", file, err)
	}
	pool := block.Endpoints()
	var next string
	for n := range len(given) + 1 {
		if next, err = pool.Get(fmt.Sprint(n)); err != nil {
			return "", err
		}
	}
	if data, err = json.Marshal(append(given, next)); err != nil {
		return "", err
	}
	return next, os.WriteFile(file, data, 0o600)
}

// ParseBlock reads what String wrote.
func ParseBlock(s string) (Block, error) {
	var b Block
	if n, err := fmt.Sscanf(s, "127.%d.0.0/16", &b); n != 1 || err != nil {
		return 0, fmt.Errorf("%q is no 127.X.0.0/16", s)
	}
	return b, nil
}
