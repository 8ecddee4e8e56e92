package guest

import (
	"encoding/json"
	"io"
	"sync"
)

// Phase is how far a machine has come.
type Phase string

// Phases in their order; failed stands beside running: the machine is up, its
// bootstrap is not done.
const (
	PhaseCloudInit Phase = "cloud-init"
	PhaseKubeadm   Phase = "kubeadm"
	PhaseRunning   Phase = "running"
	PhaseFailed    Phase = "failed"
	PhaseDone      Phase = "done"
)

// Event is a line that the daemon reads. Kind "phase" has Phase and Message; kind
// "vip" has the rest: whether this machine can answer for a virtual address.
type Event struct {
	Kind    string `json:"event"`
	Phase   Phase  `json:"phase,omitempty"`
	Message string `json:"message,omitempty"`
	Address string `json:"address,omitempty"`
	Port    int    `json:"port,omitempty"`
	Backend string `json:"backend,omitempty"`
	Up      *bool  `json:"up,omitempty"`
}

// events writes events one after the other.
type events struct {
	mu  sync.Mutex
	out *json.Encoder
}

func newEvents(out io.Writer) *events { return &events{out: json.NewEncoder(out)} }

func (e *events) send(event Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	// Without a daemon that reads there is nobody to tell.
	_ = e.out.Encode(event)
}

func (e *events) phase(phase Phase, message string) {
	e.send(Event{Kind: "phase", Phase: phase, Message: message})
}
