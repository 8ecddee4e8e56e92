package endurance

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/millwright-dev/millwright/test/sandboxtest"
)

// bed is the sandbox that this package's tests share.
var bed sandboxtest.Sandbox

func TestMain(m *testing.M) {
	if os.Getenv("ENDURANCE") == "" {
		os.Exit(m.Run()) // each test skips itself
	}
	if err := useMirror(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(sandboxtest.Main(m, &bed))
}

// useMirror has the operator of the sandbox take upstream manifests from the folder beside this repository, where it is.
func useMirror() error {
	if os.Getenv("MILLWRIGHT_MIRROR") != "" {
		return nil
	}
	mirror, err := filepath.Abs(filepath.Join("..", "..", "..", "shared", "upstream"))
	if err != nil {
		return err
	}
	if _, err := os.Stat(mirror); err != nil {
		return nil
	}
	return os.Setenv("MILLWRIGHT_MIRROR", mirror)
}

// slow skips a test that takes minutes where nobody asked for it: the first line of each test here.
func slow(t *testing.T) {
	t.Helper()
	if os.Getenv("ENDURANCE") == "" {
		t.Skip("takes minutes: `make endurance` runs it, or ENDURANCE=1 go test ./test/endurance after `make build sandbox-build`")
	}
}
