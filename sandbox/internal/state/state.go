package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/millwright-dev/millwright/sandbox/internal/process"
)

// State is what a sandbox runs.
type State struct {
	Daemon process.Identity `json:"daemon"`
	// Ready is set once every step is done; Error when one failed for good.
	Ready bool   `json:"ready"`
	Error string `json:"error,omitempty"`

	Block     string `json:"block,omitempty"`
	APIServer string `json:"apiServer,omitempty"`
	VCenter   string `json:"vCenter,omitempty"`

	Steps     []Step     `json:"steps"`
	Programs  []Program  `json:"programs"`
	Machines  []Machine  `json:"machines"`
	Endpoints []Endpoint `json:"endpoints"`
}

// Step is a part of bringing the sandbox up.
type Step struct {
	Name    string        `json:"name"`
	Started time.Time     `json:"started"`
	Took    time.Duration `json:"tookNanoseconds"`
	Done    bool          `json:"done"`
	Note    string        `json:"note,omitempty"`
}

// Program is a supervised process.
type Program struct {
	Name   string `json:"name"`
	Listen string `json:"listen"`
	process.Status
}

// Machine is a virtual machine that is no template.
type Machine struct {
	// Ref is vCenter's own name for it.
	Ref  string `json:"ref"`
	Name string `json:"name"`
	// UUID is the BIOS UUID; empty before it was ever powered on.
	UUID string `json:"uuid,omitempty"`
	// Power is vCenter's word: poweredOn, poweredOff or suspended.
	Power             string           `json:"power"`
	Address           string           `json:"address,omitempty"`
	KubernetesVersion string           `json:"kubernetesVersion,omitempty"`
	Guest             process.Identity `json:"guest,omitzero"`
	// Phase and Message are the guest's own last words.
	Phase   string `json:"phase,omitempty"`
	Message string `json:"message,omitempty"`
}

// Endpoint is a virtual address that guests hold.
type Endpoint struct {
	Address  string   `json:"address"`
	Backends []string `json:"backends"`
}

// ErrNone says that there is no sandbox in the directory.
var ErrNone = errors.New("no sandbox here")

// Load reads the state that the daemon of this directory wrote last.
func (d Dir) Load() (State, error) {
	var s State
	data, err := os.ReadFile(d.stateFile())
	if errors.Is(err, os.ErrNotExist) {
		return s, fmt.Errorf("%s: %w: start one with `sandbox up`", d, ErrNone)
	}
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("read %s: %w", d.stateFile(), err)
	}
	return s, nil
}

// Save writes the state so that a reader sees the old one or the new one,
// never half of it.
func (d Dir) Save(s State) error {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return WriteFile(d.stateFile(), data)
}

// WriteFile replaces a file at once. It is readable by its owner only.
func WriteFile(path string, data []byte) error {
	next := path + ".next"
	if err := os.WriteFile(next, data, 0o600); err != nil {
		return err
	}
	return os.Rename(next, path)
}
