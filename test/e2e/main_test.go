package e2e

import (
	"os"
	"testing"

	"github.com/millwright-dev/millwright/test/sandboxtest"
)

// bed is the sandbox that this package's tests share.
var bed sandboxtest.Sandbox

func TestMain(m *testing.M) {
	os.Exit(sandboxtest.Main(m, &bed))
}
