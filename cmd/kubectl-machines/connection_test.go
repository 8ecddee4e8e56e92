package main

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millwright-dev/millwright/internal/cli"
	"github.com/millwright-dev/millwright/internal/graph"
)

func TestViewTellsWhenTheServerStopsAnswering(t *testing.T) {
	lostAt := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	loss := &graph.Loss{Since: lostAt, Err: errors.New("connection refused")}
	steps := []struct {
		lost    *graph.Loss
		after   time.Duration
		screen  []string
		changes []string
		missing string
	}{
		{screen: []string{"tree"}, changes: []string{"change"}, missing: "1 machine"},
		{
			lost: loss, after: 2 * time.Second,
			screen:  []string{"the server has not answered for 2s, this is what was before: connection refused", "tree"},
			changes: []string{"change", "lost the connection to the server at 12:00:00: connection refused: trying again"},
			missing: "the server has not answered for 2s (connection refused); before: 1 machine",
		},
		{
			lost: loss, after: 3 * time.Second,
			screen:  []string{"the server has not answered for 3s, this is what was before: connection refused", "tree"},
			changes: []string{"change"},
			missing: "the server has not answered for 3s (connection refused); before: 1 machine",
		},
		{
			after:  4 * time.Second,
			screen: []string{"tree"}, changes: []string{"change", "the server answers again, after 4s"}, missing: "1 machine",
		},
		{after: 5 * time.Second, screen: []string{"tree"}, changes: []string{"change"}, missing: "1 machine"},
	}
	c := &connection{}
	for i, step := range steps {
		c.lost = func() *graph.Loss { return step.lost }
		c.now = func() time.Time { return lostAt.Add(step.after) }
		got := c.complete(cli.State{Missing: "1 machine", View: cli.View{Screen: []string{"tree"}, Changes: []string{"change"}}})
		want := cli.State{Missing: step.missing, View: cli.View{Screen: step.screen, Changes: step.changes}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("step %d (-want +got):\n%s", i, diff)
		}
	}
}
