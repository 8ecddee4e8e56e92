package upgrade

import (
	"fmt"
	"time"

	"github.com/robfig/cron/v3"
)

// Window is a time that comes again, in which machines may be replaced.
type Window struct {
	// Schedule is when it opens, in the five fields of cron; TimeZone a name of the time zone database, UTC when empty.
	Schedule, TimeZone string
	// Duration is how long it stays open.
	Duration time.Duration
}

// Opening is what is known of windows at a moment.
type Opening struct {
	Open bool
	// Changes is when that changes: when the window that is open closes, or when the next one opens. It is zero where
	// nothing changes: there are no windows, or none ever opens.
	Changes time.Time
}

// Windows tells whether machines may be replaced at a moment. Without a window they always may. The error names a window
// that cannot be read.
func Windows(windows []Window, now time.Time) (Opening, error) {
	if len(windows) == 0 {
		return Opening{Open: true}, nil
	}
	var o Opening
	for i, w := range windows {
		schedule, zone, err := w.parse()
		if err != nil {
			return Opening{}, fmt.Errorf("windows[%d]: %w", i, err)
		}
		// The first opening that is not over yet. An overlap of one window with itself keeps it open for longer.
		opens := schedule.Next(now.In(zone).Add(-w.Duration))
		closes := opens.Add(w.Duration)
		switch {
		case opens.IsZero():
		case !opens.After(now):
			for again := schedule.Next(opens); !again.IsZero() && !again.After(closes) && closes.Sub(now) < maxOpen; again = schedule.Next(again) {
				closes = again.Add(w.Duration)
			}
			if !o.Open || closes.After(o.Changes) {
				o = Opening{Open: true, Changes: closes}
			}
		case !o.Open && (o.Changes.IsZero() || opens.Before(o.Changes)):
			o.Changes = opens
		}
	}
	return o, nil
}

// maxOpen bounds the search for the end of a window that overlaps itself: who looks again then learns more.
const maxOpen = 14 * 24 * time.Hour

func (w Window) parse() (cron.Schedule, *time.Location, error) {
	zone, err := time.LoadLocation(w.TimeZone)
	if err != nil {
		return nil, nil, fmt.Errorf("timeZone %q is not known: want a name such as Europe/Berlin", w.TimeZone)
	}
	schedule, err := cron.ParseStandard(w.Schedule)
	if err != nil {
		return nil, nil, fmt.Errorf("schedule %q: %w: want five fields as cron has, such as \"0 22 * * 6\" for Saturdays at ten in the evening", w.Schedule, err)
	}
	return schedule, zone, nil
}
