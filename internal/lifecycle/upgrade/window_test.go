package upgrade

import (
	"strings"
	"testing"
	"time"
)

func moment(t *testing.T, s string) time.Time {
	t.Helper()
	m, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestMachinesAreReplacedInsideAWindowOnly(t *testing.T) {
	saturdays := Window{Schedule: "0 22 * * 6", Duration: 4 * time.Hour}
	berlin := Window{Schedule: "0 22 * * 6", Duration: 4 * time.Hour, TimeZone: "Europe/Berlin"}
	mornings := Window{Schedule: "0 5 * * *", Duration: time.Hour}
	hourly := Window{Schedule: "0 * * * *", Duration: 2 * time.Hour}
	cases := map[string]struct {
		windows []Window
		now     string
		open    bool
		changes string
	}{
		"no window":                {now: "2026-12-01T10:00:00Z", open: true},
		"before it":                {windows: []Window{saturdays}, now: "2026-12-05T21:59:59Z", changes: "2026-12-05T22:00:00Z"},
		"as it opens":              {windows: []Window{saturdays}, now: "2026-12-05T22:00:00Z", open: true, changes: "2026-12-06T02:00:00Z"},
		"past midnight":            {windows: []Window{saturdays}, now: "2026-12-06T01:59:59Z", open: true, changes: "2026-12-06T02:00:00Z"},
		"as it closes":             {windows: []Window{saturdays}, now: "2026-12-06T02:00:00Z", changes: "2026-12-12T22:00:00Z"},
		"in its own time zone":     {windows: []Window{berlin}, now: "2026-12-05T21:00:00Z", open: true, changes: "2026-12-06T01:00:00Z"},
		"the one that opens first": {windows: []Window{saturdays, mornings}, now: "2026-12-05T10:00:00Z", changes: "2026-12-05T22:00:00Z"},
		"one of two is open":       {windows: []Window{saturdays, mornings}, now: "2026-12-05T05:30:00Z", open: true, changes: "2026-12-05T06:00:00Z"},
		"both are, one for longer": {windows: []Window{mornings, {Schedule: "30 5 * * *", Duration: 2 * time.Hour}}, now: "2026-12-05T05:45:00Z", open: true, changes: "2026-12-05T07:30:00Z"},
		"one that never closes":    {windows: []Window{hourly}, now: "2026-12-05T05:45:00Z", open: true, changes: "2026-12-19T06:00:00Z"},
		"one that never opens":     {windows: []Window{{Schedule: "0 0 30 2 *", Duration: time.Hour}}, now: "2026-12-05T05:45:00Z"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Windows(tc.windows, moment(t, tc.now))
			if err != nil {
				t.Fatal(err)
			}
			want := Opening{Open: tc.open}
			if tc.changes != "" {
				want.Changes = moment(t, tc.changes)
			}
			if got.Open != want.Open || !got.Changes.Equal(want.Changes) {
				t.Errorf("open %v until %v; want %v until %v", got.Open, got.Changes, want.Open, want.Changes)
			}
		})
	}
}

func TestAWindowThatCannotBeReadIsNamed(t *testing.T) {
	for name, tc := range map[string]struct {
		window Window
		want   string
	}{
		"a schedule": {Window{Schedule: "at night", Duration: time.Hour}, `windows[1]: schedule "at night"`},
		"a zone":     {Window{Schedule: "0 1 * * *", Duration: time.Hour, TimeZone: "Mars/Base"}, `windows[1]: timeZone "Mars/Base"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Windows([]Window{{Schedule: "0 1 * * *", Duration: time.Hour}, tc.window}, time.Now())
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v; want one that says %q", err, tc.want)
			}
		})
	}
}
