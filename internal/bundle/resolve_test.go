package bundle

import (
	"strings"
	"testing"

	"github.com/Masterminds/semver/v3"
)

func TestTheVersionThatFitsIsChosen(t *testing.T) {
	cases := map[string]struct {
		want, kubernetes string
		version          string
		// warning and err are words of what is said; empty for nothing.
		warning, err string
	}{
		"the newest of those that fit":            {"auto", "v1.35.4", "2.0.0", "", ""},
		"an older one for an older cluster":       {"", "v1.32.0", "1.0.0", "", ""},
		"a build of a distribution":               {"auto", "v1.33.2-gke.100", "1.0.0", "", ""},
		"a version with build metadata":           {"auto", "v1.37.2+k3s1", "2.0.0", "", ""},
		"none fits: the newest, with a warning":   {"auto", "v1.39.0", "2.0.0", "no version of demo is stated for Kubernetes v1.39.0; taking the newest, 2.0.0", ""},
		"named and fitting":                       {"1.0.0", "v1.35.0", "1.0.0", "", ""},
		"named with a v":                          {"v1.0.0", "v1.35.0", "1.0.0", "", ""},
		"named and not fitting":                   {"1.0.0", "1.37.2", "1.0.0", "demo 1.0.0 is stated for Kubernetes >=1.30 <1.36; the cluster is v1.37.2", ""},
		"the cluster is not known":                {"auto", "", "2.0.0", "", ""},
		"a version that does not exist":           {"1.0.1", "v1.35.0", "", "", `unknown version "1.0.1" of add-on demo: did you mean "1.0.0"?`},
		"a Kubernetes version that is none":       {"auto", "latest", "", "", `version "latest" is not a semantic version`},
		"a named one for a version that is none":  {"1.0.0", "latest", "", "", `version "latest" is not a semantic version`},
		"the minor above the range is outside it": {"auto", "v1.38.0", "2.0.0", "taking the newest", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Resolve(demo(t), tc.want, tc.kubernetes)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("error %v, want one that says %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got.Version.Version != tc.version {
				t.Errorf("version %s, want %s", got.Version.Version, tc.version)
			}
			if (tc.warning == "") != (got.Warning == "") || !strings.Contains(got.Warning, tc.warning) {
				t.Errorf("warning %q, want %q", got.Warning, tc.warning)
			}
		})
	}
}

func TestAVersionSaysFromWhichItIsReached(t *testing.T) {
	_, v := demoVersion(t, "2.0.0")
	for installed, want := range map[string]bool{"0.9.0": false, "1.0.0": true, "2.0.0": true, "3.1.0": false} {
		if got, err := v.UpgradesFromVersion(installed); err != nil || got != want {
			t.Errorf("from %s: %v, %v; want %v", installed, got, err, want)
		}
	}
}

func TestTheNextVersionIsTheNewestInReach(t *testing.T) {
	addon := &Addon{Name: "demo"}
	for _, v := range []Version{
		{Version: "1.3.0", Kubernetes: ">=1.37", UpgradesFrom: ">=1.2"}, {Version: "1.2.0", Kubernetes: ">=1.36", UpgradesFrom: ">=1.1"},
		{Version: "1.1.0", Kubernetes: ">=1.34"}, {Version: "1.0.0", Kubernetes: ">=1.30"},
	} {
		v.semver = semver.MustParse(v.Version)
		addon.Versions = append(addon.Versions, v)
	}
	for name, tc := range map[string]struct{ installed, kubernetes, next, beyond string }{
		"one step":                       {"1.2.0", "v1.37.2", "1.3.0", ""},
		"the newest is two steps away":   {"1.1.0", "v1.37.2", "1.2.0", "1.3.0"},
		"the newest does not fit":        {"1.1.0", "v1.36.1", "1.2.0", ""},
		"the newest is there":            {"1.3.0", "v1.37.2", "", ""},
		"what is there is newer than it": {"1.3.1", "v1.37.2", "", ""},
		"only an older one fits":         {"1.2.0", "v1.34.0", "", ""},
		"from before the first":          {"0.9.0", "v1.37.2", "1.1.0", "1.3.0"},
	} {
		t.Run(name, func(t *testing.T) {
			next, beyond, err := Next(addon, tc.installed, tc.kubernetes)
			if err != nil {
				t.Fatal(err)
			}
			got := [2]string{}
			for i, v := range []*Version{next, beyond} {
				if v != nil {
					got[i] = v.Version
				}
			}
			if got != [2]string{tc.next, tc.beyond} {
				t.Errorf("next and beyond are %q, want %q", got, [2]string{tc.next, tc.beyond})
			}
		})
	}
	if _, _, err := Next(addon, "newest", "v1.37.2"); err == nil {
		t.Error("an installed version that is none is taken")
	}
}
