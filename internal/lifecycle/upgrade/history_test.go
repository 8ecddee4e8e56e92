package upgrade

import (
	"testing"
	"time"
)

func TestTheEstimateIsMadeOfUpgradesThatCameToTheirEnd(t *testing.T) {
	past := func(phase string, machines int32, took time.Duration) Past {
		return Past{Phase: phase, Machines: machines, Start: noon, End: noon.Add(took)}
	}
	cases := map[string]struct {
		history []Past
		want    time.Duration
	}{
		"none":              {want: 0},
		"one":               {history: []Past{past("Completed", 4, 8*time.Minute)}, want: 20 * time.Minute},
		"two, by machines":  {history: []Past{past("Completed", 4, 8*time.Minute), past("Completed", 1, 7*time.Minute)}, want: 30 * time.Minute},
		"aborted":           {history: []Past{past("Aborted", 1, time.Hour)}, want: 0},
		"nothing to do":     {history: []Past{past("Completed", 0, time.Second)}, want: 0},
		"unreadable before": {history: ReadHistory("{"), want: 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Estimate(tc.history, 10); got != tc.want {
				t.Errorf("estimate is %s, want %s", got, tc.want)
			}
		})
	}
}
