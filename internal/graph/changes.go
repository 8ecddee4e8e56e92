package graph

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Snapshot is what each object says of itself, to tell later what changed.
type Snapshot map[string]said

type said struct {
	text string
	// quiet are machines that are ready: no news to somebody who begins to look.
	quiet bool
}

// Snapshot returns what each node below and including n says of itself.
func (n *Node) Snapshot() Snapshot {
	s := Snapshot{}
	n.note(s)
	return s
}

// note leaves out what only repeats its owner: the sets of a deployment, and the
// objects behind a machine, whose state the machine's conditions tell.
func (n *Node) note(s Snapshot) {
	if n.Name != "" && n.Kind != "MachineSet" {
		s[n.Kind+"/"+n.Name] = said{n.describe(), n.Kind == "Machine" && n.Ready == metav1.ConditionTrue}
	}
	if n.Kind == "Machine" {
		return
	}
	for _, child := range n.Children {
		child.note(s)
	}
}

func (n *Node) describe() string {
	state := State{Ready: n.Ready, Reason: n.Reason, Message: n.Message}
	word := n.Phase
	if n.Deleting {
		word = "Deleting"
	}
	if r := n.Replicas; r != nil && r.Desired != nil && r.Ready != nil {
		// The numbers tell what a phase of running would only repeat.
		if word == string(clusterv1.MachineDeploymentPhaseRunning) || word == "" {
			word = strings.Join(n.Doing, ", ")
		}
		text := fmt.Sprintf("%d of %d ready", *r.Ready, *r.Desired)
		if word != "" {
			text += ", " + word
		}
		return withDetail(text, state)
	}
	switch {
	case word == "" && n.Ready == metav1.ConditionTrue:
		word = "Ready"
		if len(n.Doing) > 0 {
			word = strings.Join(n.Doing, ", ")
		}
	case word == "":
		word = "Not ready"
	case n.Ready == metav1.ConditionTrue:
		word += ", Ready"
	}
	return withDetail(word, state)
}

// Changes returns a line for each object that is not as it was before, sorted by
// name. Without a before it is what there is, less the machines that are ready.
func (s Snapshot) Changes(before Snapshot) []string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(s)) {
		if now := s[name]; now.text != before[name].text && (before != nil || !now.quiet) {
			lines = append(lines, name+": "+now.text)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, there := s[name]; !there {
			lines = append(lines, name+": gone")
		}
	}
	return lines
}

// Owned returns the tree of owner and its machines alone: what a command that
// waits for owner watches.
func (g *Graph) Owned(owner *Object, opts TreeOptions) *Node {
	t := treeBuilder{Graph: g, opts: opts}
	n := t.node(owner, "")
	n.add(t.machines(g.Machines(owner))...)
	return n
}
