package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"time"
)

// Record is what is left on disk of a process, for whoever cleans up after us.
type Record struct {
	Identity
	Name string `json:"name"`
	// Group says that the process leads a group, which goes with it.
	Group bool `json:"group"`
}

// Records is a directory with a file for each running process.
type Records string

func (r Records) path(name string) string {
	return filepath.Join(string(r), strings.ReplaceAll(name, "/", "_")+".json")
}

// Put writes the record of a process.
func (r Records) Put(rec Record) error {
	data, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	return os.WriteFile(r.path(rec.Name), data, 0o600)
}

// Remove takes a record away; that there is none is no error.
func (r Records) Remove(name string) error {
	if err := os.Remove(r.path(name)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// List returns the records by name. A file that cannot be read as one (half
// written by a crash) is passed over.
func (r Records) List() ([]Record, error) {
	entries, err := os.ReadDir(string(r))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []Record
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(string(r), e.Name()))
		if err != nil {
			continue
		}
		var rec Record
		if json.Unmarshal(data, &rec) == nil && rec.PID > 0 {
			list = append(list, rec)
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Name < list[j].Name })
	return list, nil
}

// KillAll ends every recorded process that still runs, waits until they are
// gone, and returns the names of those it ended.
func (r Records) KillAll(timeout time.Duration) ([]string, error) {
	list, err := r.List()
	if err != nil {
		return nil, err
	}
	var killed []string
	for _, rec := range list {
		if !rec.Alive() {
			continue
		}
		signal := rec.Signal
		if rec.Group {
			signal = rec.SignalGroup
		}
		if err := signal(syscall.SIGKILL); err != nil {
			return killed, fmt.Errorf("end %s (pid %d): %w", rec.Name, rec.PID, err)
		}
		killed = append(killed, rec.Name)
	}
	deadline := time.Now().Add(timeout)
	for _, rec := range list {
		if !rec.WaitGone(time.Until(deadline)) {
			return killed, fmt.Errorf("%s (pid %d) does not end", rec.Name, rec.PID)
		}
	}
	return killed, nil
}

// WaitGone waits until the process has ended, at most for timeout, and says
// whether it has. The process need not be a child of ours, so there is nothing
// to wait on but its disappearance.
func (i Identity) WaitGone(timeout time.Duration) bool {
	deadline := time.Now().Add(timeout)
	for i.Alive() {
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(20 * time.Millisecond)
	}
	return true
}
