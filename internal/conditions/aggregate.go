package conditions

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What one aggregated message lists before it only counts: names of a group, and groups.
const (
	maxNames  = 3
	maxGroups = 3
)

// Aggregation says how one condition that many objects bear becomes one condition of their owner.
type Aggregation struct {
	// From is the type on the objects, To the type of the result.
	From, To string
	// Kind names the objects in messages, in the singular: Machine.
	Kind string
	// Reasons of the result: every object is True, one is False, one is Unknown and none False, there are no objects.
	True, False, Unknown, Empty string
}

// Named is an object with a name and conditions.
type Named interface {
	Getter
	GetName() string
}

// Aggregate returns the condition of the owner of objs: True when all are, False when one is, else Unknown; an object
// that does not report the condition is Unknown. The message names objects that share a cause together, most first,
// so that a thousand machines with one problem are one line.
func Aggregate[T Named](objs []T, a Aggregation) metav1.Condition {
	if len(objs) == 0 {
		return True(a.To, a.Empty, "")
	}
	result := True(a.To, a.True, "")
	type group struct {
		status  metav1.ConditionStatus
		message string
		names   []string
	}
	var groups []*group
	for _, obj := range objs {
		status, message := metav1.ConditionUnknown, fmt.Sprintf("Condition %s not yet reported", a.From)
		if c := Get(obj, a.From); c != nil {
			status, message = c.Status, c.Message
		}
		switch {
		case status == metav1.ConditionTrue:
			continue
		case status == metav1.ConditionFalse:
			result.Status, result.Reason = status, a.False
		case result.Status == metav1.ConditionTrue:
			result.Status, result.Reason = metav1.ConditionUnknown, a.Unknown
		}
		i := slices.IndexFunc(groups, func(g *group) bool { return g.status == status && g.message == message })
		if i < 0 {
			i = len(groups)
			groups = append(groups, &group{status: status, message: message})
		}
		groups[i].names = append(groups[i].names, obj.GetName())
	}
	for _, g := range groups {
		slices.Sort(g.names)
	}
	slices.SortFunc(groups, func(x, y *group) int {
		return cmp.Or(
			cmp.Compare(severity(x.status), severity(y.status)),
			cmp.Compare(len(y.names), len(x.names)),
			cmp.Compare(x.names[0], y.names[0]),
		)
	})

	var lines []string
	others := 0
	for i, g := range groups {
		if i >= maxGroups {
			others += len(g.names)
			continue
		}
		lines = append(lines, line(a.Kind, g.names, g.message))
	}
	if others > 0 {
		lines = append(lines, fmt.Sprintf("* And %d more %s with other causes", others, plural(a.Kind, others)))
	}
	result.Message = strings.Join(lines, "\n")
	return result
}

func severity(status metav1.ConditionStatus) int {
	if status == metav1.ConditionFalse {
		return 0
	}
	return 1
}

func line(kind string, names []string, message string) string {
	shown := names[:min(len(names), maxNames)]
	subject := fmt.Sprintf("* %s %s", plural(kind, len(names)), strings.Join(shown, ", "))
	if hidden := len(names) - len(shown); hidden > 0 {
		subject += fmt.Sprintf(", ... (%d more)", hidden)
	}
	// A message that is itself a list goes below its subject.
	if strings.HasPrefix(message, "* ") {
		return subject + ":\n  " + strings.ReplaceAll(message, "\n", "\n  ")
	}
	if message == "" {
		return subject
	}
	return subject + ": " + message
}

func plural(kind string, count int) string {
	if count == 1 {
		return kind
	}
	return kind + "s"
}
