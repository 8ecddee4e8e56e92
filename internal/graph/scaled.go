package graph

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Scale is how far an object that owns machines has come to a number of replicas.
type Scale struct {
	Done bool
	// Ready is how many machines run with a ready Node, Leaving how many are
	// being deleted.
	Ready, Leaving int
	// Missing says what is still to come and why; empty when done.
	Missing string
}

// namedInMissing is how many machines a message names before it says how many more.
const namedInMissing = 3

// Scaled compares owner with what it was asked to have. It is done when its
// controller has seen the number, exactly so many Machines run with ready Nodes,
// and none is left to go.
func (g *Graph) Scaled(owner *Object, replicas int32) Scale {
	scale := Scale{}
	var waiting []string
	machines := g.Machines(owner)
	for _, m := range machines {
		why := notRunning(m)
		switch {
		case m.GetDeletionTimestamp() != nil:
			scale.Leaving++
		case why == "":
			scale.Ready++
		}
		if why != "" {
			waiting = append(waiting, fmt.Sprintf("machine %s: %s", m.GetName(), why))
		}
	}
	staying := len(machines) - scale.Leaving
	if staying < int(replicas) {
		waiting = append(waiting, fmt.Sprintf("%d not created yet%s", int(replicas)-staying, because(owner, clusterv1.ScalingUpCondition)))
	}
	if surplus := staying - int(replicas); surplus > 0 {
		waiting = append(waiting, fmt.Sprintf("%d too many%s", surplus, because(owner, clusterv1.ScalingDownCondition)))
	}
	var current int32
	if reported := owner.Replicas(); reported != nil && reported.Current != nil {
		current = *reported.Current
	}
	if len(waiting) == 0 && (current != replicas || !owner.observed()) {
		waiting = append(waiting, fmt.Sprintf("%s %s does not report %d replicas yet", owner.Kind.Kind, owner.GetName(), replicas))
	}
	if len(waiting) == 0 {
		scale.Done = true
		return scale
	}
	if more := len(waiting) - namedInMissing; more > 0 {
		waiting = append(waiting[:namedInMissing], fmt.Sprintf("%d more", more))
	}
	scale.Missing = fmt.Sprintf("%d of %d machines are ready: %s", scale.Ready, replicas, strings.Join(waiting, "; "))
	return scale
}

// notRunning says why a machine does not count as ready; empty when it does.
func notRunning(o *Object) string {
	machine := o.Object.(*clusterv1.Machine)
	if machine.DeletionTimestamp != nil {
		return withDetail("being deleted", o.State())
	}
	if machine.Status.Phase != string(clusterv1.MachinePhaseRunning) {
		phase := machine.Status.Phase
		if phase == "" {
			phase = "Pending"
		}
		return withDetail(phase, o.State())
	}
	node := find(machine.Status.Conditions, clusterv1.MachineNodeReadyCondition)
	if node == nil || node.Status == metav1.ConditionTrue {
		return ""
	}
	return withDetail("node "+machine.Status.NodeRef.Name+" is not ready", State{Reason: node.Reason, Message: node.Message, Ready: node.Status})
}

// withDetail adds to a word the reason and the first line of the message.
func withDetail(word string, state State) string {
	if state.Ready == metav1.ConditionTrue || state.Reason == NotReported {
		return word
	}
	// A message says more than a reason that only repeats the word.
	reason, line := state.Reason, FirstLine(state.Message)
	switch reason {
	case "Deleting", "NotReady", "ReadyUnknown", "NotAvailable", "AvailableUnknown":
		reason = ""
	}
	detail := strings.Trim(reason+": "+line, ": ")
	if detail == "" {
		return word
	}
	return fmt.Sprintf("%s (%s)", word, detail)
}

// because returns the message of a condition of owner in brackets, if it has one.
func because(owner *Object, conditionType string) string {
	c := find(owner.Conditions(), conditionType)
	if c == nil || FirstLine(c.Message) == "" {
		return ""
	}
	return " (" + FirstLine(c.Message) + ")"
}

// FirstLine returns the first statement of a condition's message as one line,
// without the bullets of the lists that Cluster API puts together. A line that
// ends in a colon is only the title of the list below it.
func FirstLine(message string) string {
	var parts []string
	for line := range strings.Lines(strings.TrimSpace(message)) {
		part := strings.TrimPrefix(strings.TrimSpace(line), "* ")
		parts = append(parts, part)
		if !strings.HasSuffix(part, ":") {
			break
		}
	}
	return strings.Join(parts, " ")
}

// observed tells whether the controller has seen the last change of the spec.
func (o *Object) observed() bool {
	var seen int64
	switch obj := o.Object.(type) {
	case *clusterv1.MachineDeployment:
		seen = obj.Status.ObservedGeneration
	case *clusterv1.MachineSet:
		seen = obj.Status.ObservedGeneration
	case *unstructured.Unstructured:
		seen, _, _ = unstructured.NestedInt64(obj.Object, "status", "observedGeneration")
	}
	return seen >= o.GetGeneration()
}
