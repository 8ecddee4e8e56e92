package upgrade

import (
	"encoding/json"
	"time"
)

// Past is one upgrade in the history of a Cluster.
type Past struct {
	Name  string    `json:"name"`
	From  string    `json:"from"`
	To    string    `json:"to"`
	Phase string    `json:"phase"`
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
	// Machines is how many were replaced.
	Machines int32 `json:"machines"`
}

// ReadHistory reads what a Cluster remembers, the newest first. What cannot be read is as if it were not there: it is for
// people, and nothing depends on it.
func ReadHistory(text string) []Past {
	var history []Past
	if json.Unmarshal([]byte(text), &history) != nil {
		return nil
	}
	return history
}

// Estimate tells how long it will take to replace so many machines, by the upgrades that came to their end, the waits of
// people included. It is zero where there was none.
func Estimate(history []Past, machines int32) time.Duration {
	var took time.Duration
	var replaced int32
	for _, past := range history {
		if past.Phase == "Completed" && past.Machines > 0 && past.End.After(past.Start) {
			took, replaced = took+past.End.Sub(past.Start), replaced+past.Machines
		}
	}
	if replaced == 0 {
		return 0
	}
	return (took * time.Duration(machines) / time.Duration(replaced)).Round(time.Second)
}
