package lifecycle_test

import (
	"testing"

	"github.com/millwright-dev/millwright/internal/lifecycle"
)

func TestNormalizeVersionAddsTheLeadingV(t *testing.T) {
	for in, want := range map[string]string{"1.37.2": "v1.37.2", "v1.37.2": "v1.37.2", "": ""} {
		if got := lifecycle.NormalizeVersion(in); got != want {
			t.Errorf("NormalizeVersion(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestParseVersionRefusesWhatIsNotAFullVersion(t *testing.T) {
	for _, in := range []string{"", "v1.37", "latest", "v1.37.x", "vv1.37.2"} {
		if v, err := lifecycle.ParseVersion(in); err == nil {
			t.Errorf("ParseVersion(%q) = %s, want an error", in, v)
		}
	}
	if _, err := lifecycle.ParseVersion("v1.37.2-beta.1+vendor.3"); err != nil {
		t.Errorf("a pre-release of a vendor: %v", err)
	}
}
