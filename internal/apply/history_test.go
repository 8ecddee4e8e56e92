package apply

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// noon is when the revisions below are made.
var noon = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)

func TestARevisionIsAnotherVersionOrOtherParameters(t *testing.T) {
	first := []Revision{{Number: 4, Version: "1.0.0", Parameters: map[string]any{"replicas": float64(2)}, Time: noon}}
	cases := map[string]struct {
		version    string
		parameters map[string]any
		want       int
	}{
		"the same again":              {"1.0.0", map[string]any{"replicas": 2}, 4},
		"another version":             {"2.0.0", map[string]any{"replicas": 2}, 5},
		"another value":               {"1.0.0", map[string]any{"replicas": 3}, 5},
		"a parameter that is no more": {"1.0.0", nil, 5},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			plan := &Plan{Set: Set{Name: "demo", Version: tc.version, Parameters: tc.parameters}}
			history := withRevision(first, plan, noon)
			if got := history[len(history)-1].Number; got != tc.want {
				t.Errorf("the newest revision is %d, want %d", got, tc.want)
			}
		})
	}
}

func TestTheLastTenRevisionsAreKeptAndReadBack(t *testing.T) {
	record := &Parent{Name: "demo", State: StateApplied}
	for i := range 25 {
		plan := &Plan{Set: Set{Version: fmt.Sprintf("1.0.%d", i)}, Changes: []Change{{Action: ActionCreate}}}
		record.History = withRevision(record.History, plan, noon)
	}
	record.Version = "1.0.24"
	object, err := record.object()
	if err != nil {
		t.Fatal(err)
	}
	got, err := parseParent("demo", object)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(record.History, got.History); diff != "" || len(got.History) != 10 {
		t.Errorf("%d revisions (-want +got):\n%s", len(got.History), diff)
	}
	if last := got.Current(); last.Number != 25 || last.Created != 1 {
		t.Errorf("the current revision is %+v, want number 25 with one object created", last)
	}
}

func TestTheRevisionToGoBackTo(t *testing.T) {
	record := &Parent{Name: "demo", Version: "2.0.0", History: []Revision{
		{Number: 1, Version: "1.0.0"}, {Number: 2, Version: "1.5.0"}, {Number: 3, Version: "2.0.0"},
	}}
	for name, tc := range map[string]struct{ number, want int }{
		"the one before":    {0, 2},
		"one that is named": {1, 1},
		"one that is not":   {9, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := record.Revision(tc.number)
			if tc.want == 0 {
				if err == nil {
					t.Errorf("revision %+v, want an error", got)
				}
				return
			}
			if err != nil || got.Number != tc.want {
				t.Errorf("revision %+v (%v), want %d", got, err, tc.want)
			}
		})
	}
	if _, err := (&Parent{Name: "demo", Version: "1.0.0", History: record.History[:1]}).Revision(0); err == nil {
		t.Error("there is nothing before the first revision, yet one was found")
	}
}
