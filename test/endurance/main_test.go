package endurance

import (
	"os"
	"testing"

	"github.com/millwright-dev/millwright/test/sandboxtest"
)

// bed is the sandbox that this package's tests share.
var bed sandboxtest.Sandbox

func TestMain(m *testing.M) {
	if os.Getenv("ENDURANCE") == "" {
		os.Exit(m.Run()) // each test skips itself
	}
	os.Exit(sandboxtest.Main(m, &bed))
}

// slow skips a test that takes minutes where nobody asked for it: the first line of each test here.
func slow(t *testing.T) {
	t.Helper()
	if os.Getenv("ENDURANCE") == "" {
		t.Skip("takes minutes: `make endurance` runs it, or ENDURANCE=1 go test ./test/endurance after `make build sandbox-build`")
	}
}
