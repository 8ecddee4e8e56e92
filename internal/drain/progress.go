package drain

import (
	"fmt"
	"slices"
	"strings"
)

// Bounds of what is named, so that a condition stays readable.
const (
	// maxPodsNamed is how many pods with one cause a line names.
	maxPodsNamed = 5
	// maxCausesNamed is how many causes have a line of their own.
	maxCausesNamed = 10
)

// Progress is what one pass over the pods of a Node found. Pods are namespace/name.
type Progress struct {
	// Refused are pods whose eviction the API server does not allow now.
	Refused []Cause
	// Completing are pods that nobody evicts; the cause is who asks for that.
	Completing []Cause
	// Evicted are those whose eviction was granted in this pass; they are in Terminating too.
	Evicted []string
	// Terminating are on their way out; Later wait for those of a lower order.
	Terminating, Later []string
}

// Cause is a pod and why it is still there.
type Cause struct{ Pod, Why string }

// Done tells whether no pod is left that the drain is for.
func (p Progress) Done() bool {
	return len(p.Refused)+len(p.Completing)+len(p.Terminating)+len(p.Later) == 0
}

// Lines names the pods that hold up the drain, those with one cause together, what needs somebody's attention first.
func (p Progress) Lines() []string {
	lines := causes(p.Refused, "%s cannot be evicted: %s")
	lines = append(lines, causes(p.Completing, "%s: not evicted but waited for until completed, as %s asks")...)
	if len(p.Terminating) > 0 {
		lines = append(lines, namePods(p.Terminating)+": evicted, not yet terminated")
	}
	if len(p.Later) > 0 {
		lines = append(lines, namePods(p.Later)+": evicted when the pods of a lower order are gone")
	}
	return lines
}

// causes makes one line of each cause, sorted.
func causes(list []Cause, format string) []string {
	pods := map[string][]string{}
	var order []string
	for _, c := range list {
		if pods[c.Why] == nil {
			order = append(order, c.Why)
		}
		pods[c.Why] = append(pods[c.Why], c.Pod)
	}
	slices.Sort(order)
	var lines []string
	var rest []string
	for i, why := range order {
		if i < maxCausesNamed {
			lines = append(lines, fmt.Sprintf(format, namePods(pods[why]), why))
			continue
		}
		rest = append(rest, pods[why]...)
	}
	if len(rest) > 0 {
		lines = append(lines, fmt.Sprintf(format, namePods(rest), "for other causes"))
	}
	return lines
}

func namePods(names []string) string {
	slices.Sort(names)
	text := "Pod "
	if len(names) > 1 {
		text = "Pods "
	}
	text += strings.Join(names[:min(len(names), maxPodsNamed)], ", ")
	if hidden := len(names) - maxPodsNamed; hidden > 0 {
		text += fmt.Sprintf(", ... (%d more)", hidden)
	}
	return text
}
