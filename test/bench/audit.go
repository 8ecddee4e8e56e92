package bench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
)

// event is what we read of an audit.k8s.io/v1 Event.
type event struct {
	Stage     string `json:"stage"`
	Verb      string `json:"verb"`
	UserAgent string `json:"userAgent"`
	User      struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

// counted tells whether the event is the one by which its request is counted: a
// watch has two, and only the first comes in time.
func (e event) counted() bool {
	if e.Verb == "watch" {
		return e.Stage == "ResponseStarted"
	}
	return e.Stage != "ResponseStarted"
}

// request is what requests are told apart by.
type request struct{ verb, resource string }

func (r request) write() bool {
	switch r.verb {
	case "get", "list", "watch":
		return false
	}
	return true
}

// lease says that the request keeps up the leader election, which goes on for
// as long as the operator runs.
func (r request) lease() bool { return r.resource == "leases" }

// tally counts requests.
type tally struct {
	requests map[request]int
	// conflicts were answered with 409. stale were refused since they tested for
	// what was no longer so (422): conflicts by another name.
	conflicts, stale map[request]int
}

func newTally() tally {
	return tally{requests: map[request]int{}, conflicts: map[request]int{}, stale: map[request]int{}}
}

func (t tally) add(e event) {
	r := request{e.Verb, e.ObjectRef.Resource}
	if r.resource == "" {
		r.resource = "(no resource)"
	}
	if e.ObjectRef.Subresource != "" {
		r.resource += "/" + e.ObjectRef.Subresource
	}
	t.requests[r]++
	switch e.ResponseStatus.Code {
	case http.StatusConflict:
		t.conflicts[r]++
	case http.StatusUnprocessableEntity:
		t.stale[r]++
	}
}

// merge adds what another tally has counted.
func (t tally) merge(other tally) {
	for _, pair := range []struct{ into, from map[request]int }{
		{t.requests, other.requests}, {t.conflicts, other.conflicts}, {t.stale, other.stale},
	} {
		for r, n := range pair.from {
			pair.into[r] += n
		}
	}
}

// total sums up what counts; nil counts everything.
func total(requests map[request]int, counts func(request) bool) int {
	sum := 0
	for r, n := range requests {
		if counts == nil || counts(r) {
			sum += n
		}
	}
	return sum
}

// auditLog is one API server's audit log, read as it grows.
type auditLog struct {
	path string
	// mine tells whose requests are counted.
	mine   func(event) bool
	offset int64
}

// next counts what was added since the call before. A line that is still being
// written is left for the next call.
func (l *auditLog) next() (tally, error) {
	t := newTally()
	file, err := os.Open(l.path)
	if err != nil {
		return t, fmt.Errorf("read the audit log: %w", err)
	}
	defer file.Close()
	if _, err := file.Seek(l.offset, io.SeekStart); err != nil {
		return t, err
	}
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return t, nil
		}
		if err != nil {
			return t, fmt.Errorf("read the audit log: %w", err)
		}
		l.offset += int64(len(line))
		var e event
		if err := json.Unmarshal(bytes.TrimSpace(line), &e); err != nil {
			return t, fmt.Errorf("read %s before byte %d: %w", l.path, l.offset, err)
		}
		if e.counted() && l.mine(e) {
			t.add(e)
		}
	}
}
