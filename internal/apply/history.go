package apply

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"
)

// historyLimit is how many revisions a record keeps.
const historyLimit = 10

// Revision is one version, with its parameters, that a set had.
type Revision struct {
	// Number counts from 1 and is never given twice.
	Number     int            `json:"revision"`
	Version    string         `json:"version"`
	Parameters map[string]any `json:"parameters,omitempty"`
	// Customization is that of the Set.
	Customization string `json:"customization,omitempty"`
	// Time is when the apply came to its end, to the second.
	Time time.Time `json:"time"`
	// What that apply did.
	Created    int `json:"created,omitempty"`
	Configured int `json:"configured,omitempty"`
	Recreated  int `json:"recreated,omitempty"`
	Pruned     int `json:"pruned,omitempty"`
	Retained   int `json:"retained,omitempty"`
}

// Changes counts in words what the apply of a revision did: 3 created, 1 pruned.
func (r Revision) Changes() string {
	var parts []string
	for _, count := range []struct {
		n    int
		word string
	}{
		{r.Created, "created"}, {r.Configured, "configured"}, {r.Recreated, "recreated"}, {r.Pruned, "pruned"}, {r.Retained, "retained"},
	} {
		if count.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count.n, count.word))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// same tells whether a revision is of this version, these parameters and this customization.
func (r Revision) same(version string, parameters map[string]any, customization string) bool {
	if r.Version != version || r.Customization != customization || len(r.Parameters) != len(parameters) {
		return false
	}
	return len(parameters) == 0 || reflect.DeepEqual(plainJSON(r.Parameters), plainJSON(parameters))
}

// plainJSON gives values the types that they have once read back from a record.
func plainJSON(values map[string]any) any {
	content, err := json.Marshal(values)
	if err != nil {
		return values
	}
	var plain any
	if err := json.Unmarshal(content, &plain); err != nil {
		return values
	}
	return plain
}

// Current is the newest revision; nil when none is recorded.
func (p *Parent) Current() *Revision {
	if len(p.History) == 0 {
		return nil
	}
	return &p.History[len(p.History)-1]
}

// Revision finds a revision by its number. Zero means the one before the current:
// the newest that has another version or other parameters.
func (p *Parent) Revision(number int) (*Revision, error) {
	for i := len(p.History) - 1; i >= 0; i-- {
		r := &p.History[i]
		if r.Number == number || number == 0 && !r.same(p.Version, p.Parameters, p.Customization) {
			return r, nil
		}
	}
	if number == 0 {
		return nil, fmt.Errorf("add-on %s has no revision before %s: there is nothing to go back to", p.Name, p.Version)
	}
	return nil, fmt.Errorf("add-on %s has no revision %d: the last %d are kept", p.Name, number, historyLimit)
}

// withRevision appends what a plan did. Repairs of the same version with the same
// parameters are no revision.
func withRevision(history []Revision, plan *Plan, at time.Time) []Revision {
	number := 1
	if n := len(history); n > 0 {
		if history[n-1].same(plan.Set.Version, plan.Set.Parameters, plan.Set.Customization) {
			return history
		}
		number = history[n-1].Number + 1
	}
	next := append(append([]Revision(nil), history...), Revision{
		Number: number, Version: plan.Set.Version, Parameters: plan.Set.Parameters, Customization: plan.Set.Customization, Time: at.UTC().Truncate(time.Second),
		Created: plan.Count(ActionCreate), Configured: plan.Count(ActionConfigure), Recreated: plan.Count(ActionRecreate),
		Pruned: plan.Count(ActionPrune), Retained: plan.Count(ActionRetain),
	})
	return next[max(0, len(next)-historyLimit):]
}

// historyLines writes revisions one a line, the oldest first.
func historyLines(history []Revision) (string, error) {
	var b strings.Builder
	for _, revision := range history {
		line, err := json.Marshal(revision)
		if err != nil {
			return "", err
		}
		b.Write(line)
		b.WriteByte('\n')
	}
	return b.String(), nil
}

func parseHistory(lines string) ([]Revision, error) {
	var history []Revision
	for line := range strings.Lines(lines) {
		var revision Revision
		if err := json.Unmarshal([]byte(line), &revision); err != nil {
			return nil, err
		}
		history = append(history, revision)
	}
	return history, nil
}
