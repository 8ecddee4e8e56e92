package diagnosis

import (
	"time"

	"github.com/millwright-dev/millwright/internal/graph"
)

// Finding is one trouble.
type Finding struct {
	// Code names the kind of trouble; scripts and docs/troubleshooting.md rely on it.
	Code   string    `json:"code"`
	Object Reference `json:"object"`
	// Since is when it began, as far as somebody recorded it.
	Since *time.Time `json:"since,omitempty"`
	Cause string     `json:"cause"`
	// Remedy is what a person can do, empty where the cause says it.
	Remedy string `json:"remedy,omitempty"`
	// Likely marks a conclusion from what is not there, and not from what somebody said.
	Likely   bool       `json:"likely,omitempty"`
	Evidence []Evidence `json:"evidence,omitempty"`
	// Behind are the troubles that wait for this one, or come from it.
	Behind []Behind `json:"behind,omitempty"`

	layer layer
	// wide is trouble of the whole cluster: everything of a higher layer may come from it.
	wide bool
	of   *graph.Object
}

// Reference names an object. Cluster is set where it lives in the workload cluster and not beside the Cluster.
type Reference struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Cluster   string `json:"cluster,omitempty"`
}

// String is the reference as kubectl would take it.
func (r Reference) String() string {
	if r.Name == "" {
		return r.Kind
	}
	return r.Kind + "/" + r.Name
}

// Evidence is what somebody recorded: a condition, an event, a status.
type Evidence struct {
	Source string `json:"source"`
	Text   string `json:"text"`
}

// Behind is trouble that another explains.
type Behind struct {
	Code   string    `json:"code"`
	Object Reference `json:"object"`
}

// layer is how deep in the order of things trouble sits: what is lower explains what is higher. Nothing can be cloned
// without a vCenter, no node joins without a control plane, no pod runs without a network.
type layer int

const (
	layerController   layer = iota // who should act does not, or may not
	layerIntent                    // somebody said: not now
	layerProvider                  // vCenter, its credentials, the endpoint
	layerSpec                      // what was asked for cannot be had
	layerMachine                   // the machine's infrastructure
	layerBootstrap                 // what the machine does when it starts
	layerControlPlane              // etcd, certificates, the API server
	layerConnection                // the way to the workload cluster
	layerCluster                   // what every node of the workload cluster needs
	layerNode                      // one node
	layerPolicy                    // rules that hold machines back
	layerRemoval                   // machines on their way out
	layerAddOn                     // what runs on top
)

func reference(o *graph.Object) Reference {
	return Reference{Kind: o.Kind.Kind, Namespace: o.GetNamespace(), Name: o.GetName()}
}

// finding begins a finding about an object of the graph.
func finding(code string, l layer, o *graph.Object, cause string) Finding {
	return Finding{Code: code, layer: l, Object: reference(o), Cause: cause, of: o}
}

func (f Finding) since(t time.Time) Finding {
	if !t.IsZero() {
		f.Since = &t
	}
	return f
}

func (f Finding) because(source, text string) Finding {
	f.Evidence = append(f.Evidence, Evidence{Source: source, Text: text})
	return f
}
