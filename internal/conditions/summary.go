package conditions

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Part is one condition that a summary is made of.
type Part struct {
	Type string
	// Negative conditions are good when False.
	Negative bool
	// Optional conditions count only when the object has them; others that are missing count as Unknown.
	Optional bool
	// Brief replaces the message of the condition in the summary; for messages that change too often to be repeated.
	Brief string
}

// Reasons of a summary: every part is good, one is bad, one is Unknown and none bad.
type Reasons struct{ True, False, Unknown string }

// Summary folds conditions of one object into one: True when every part is good, False when one is bad, else Unknown.
// The message lists the parts that are not good, in the order given.
func Summary(obj Getter, conditionType string, reasons Reasons, parts []Part) metav1.Condition {
	result := True(conditionType, reasons.True, "")
	var lines []string
	for _, part := range parts {
		c := Get(obj, part.Type)
		status, message := metav1.ConditionUnknown, "Condition "+part.Type+" not yet reported"
		switch {
		case c == nil && part.Optional:
			continue
		case c != nil:
			status, message = c.Status, c.Message
			if part.Brief != "" {
				message = part.Brief
			}
		}
		good := metav1.ConditionTrue
		if part.Negative {
			good = metav1.ConditionFalse
		}
		if status == good {
			continue
		}
		if status == metav1.ConditionUnknown {
			if result.Status == metav1.ConditionTrue {
				result.Status, result.Reason = metav1.ConditionUnknown, reasons.Unknown
			}
		} else {
			result.Status, result.Reason = metav1.ConditionFalse, reasons.False
		}
		lines = append(lines, partLine(part.Type, message))
	}
	result.Message = strings.Join(lines, "\n")
	return result
}

func partLine(conditionType, message string) string {
	if message == "" {
		return "* " + conditionType
	}
	if strings.HasPrefix(message, "* ") {
		return "* " + conditionType + ":\n  " + strings.ReplaceAll(message, "\n", "\n  ")
	}
	return "* " + conditionType + ": " + message
}
