package e2e

import (
	"strings"
	"testing"
)

func TestPluginsAnswerHelpAndAWrongFlag(t *testing.T) {
	for _, plugin := range []string{"machines", "addons"} {
		t.Run(plugin, func(t *testing.T) {
			if out := bed.Run(t, "kubectl", plugin, "--help"); !strings.Contains(out, "kubectl "+plugin) {
				t.Errorf("help does not say `kubectl %s`:\n%s", plugin, out)
			}
			if got := bed.Try(t, nil, "", "kubectl", plugin, "--no-such-flag"); got.Code != 2 {
				t.Errorf("a wrong flag: exit code %d, want 2; %s", got.Code, got.Stderr)
			}
		})
	}
}
