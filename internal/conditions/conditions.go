package conditions

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxMessage is the length that the CRD schema of metav1.Condition accepts.
const maxMessage = 32768

// Getter is an object with conditions.
type Getter interface {
	GetConditions() []metav1.Condition
}

// Setter is an object whose conditions can be written.
type Setter interface {
	Getter
	SetConditions([]metav1.Condition)
	GetGeneration() int64
}

// Set adds c to obj or replaces the condition of its type. Where c leaves them out, observedGeneration is the object's
// generation and lastTransitionTime is that of the condition before, or now when the status changed.
func Set(obj Setter, c metav1.Condition) {
	if c.ObservedGeneration == 0 {
		c.ObservedGeneration = obj.GetGeneration()
	}
	if len(c.Message) > maxMessage {
		c.Message = c.Message[:maxMessage-3] + "..."
	}
	list := slices.Clone(obj.GetConditions())
	i := slices.IndexFunc(list, func(have metav1.Condition) bool { return have.Type == c.Type })
	switch {
	case i < 0:
		c.LastTransitionTime = transition(c.LastTransitionTime)
		list = append(list, c)
	default:
		if list[i].Status == c.Status {
			c.LastTransitionTime = list[i].LastTransitionTime
		} else {
			c.LastTransitionTime = transition(c.LastTransitionTime)
		}
		list[i] = c
	}
	slices.SortStableFunc(list, func(a, b metav1.Condition) int {
		return cmp.Or(cmp.Compare(rank(a.Type), rank(b.Type)), cmp.Compare(a.Type, b.Type))
	})
	obj.SetConditions(list)
}

// Delete removes the condition of a type.
func Delete(obj Setter, conditionType string) {
	obj.SetConditions(slices.DeleteFunc(slices.Clone(obj.GetConditions()), func(c metav1.Condition) bool {
		return c.Type == conditionType
	}))
}

// Get returns the condition of a type, nil when there is none.
func Get(obj Getter, conditionType string) *metav1.Condition {
	for _, c := range obj.GetConditions() {
		if c.Type == conditionType {
			return &c
		}
	}
	return nil
}

// IsTrue tells whether the condition exists and is True.
func IsTrue(obj Getter, conditionType string) bool {
	c := Get(obj, conditionType)
	return c != nil && c.Status == metav1.ConditionTrue
}

// IsFalse tells whether the condition exists and is False.
func IsFalse(obj Getter, conditionType string) bool {
	c := Get(obj, conditionType)
	return c != nil && c.Status == metav1.ConditionFalse
}

// True returns a condition for Set. Without args, messageFormat is taken as it is.
func True(conditionType, reason, messageFormat string, args ...any) metav1.Condition {
	return condition(metav1.ConditionTrue, conditionType, reason, messageFormat, args)
}

// False returns a condition for Set. Without args, messageFormat is taken as it is.
func False(conditionType, reason, messageFormat string, args ...any) metav1.Condition {
	return condition(metav1.ConditionFalse, conditionType, reason, messageFormat, args)
}

// Unknown returns a condition for Set. Without args, messageFormat is taken as it is.
func Unknown(conditionType, reason, messageFormat string, args ...any) metav1.Condition {
	return condition(metav1.ConditionUnknown, conditionType, reason, messageFormat, args)
}

func condition(status metav1.ConditionStatus, conditionType, reason, format string, args []any) metav1.Condition {
	message := format
	if len(args) > 0 {
		message = fmt.Sprintf(format, args...)
	}
	return metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: message}
}

// transition truncates to seconds, as the API server stores it, so that a comparison with what was stored is equal.
func transition(given metav1.Time) metav1.Time {
	if given.IsZero() {
		given = metav1.Now()
	}
	return metav1.NewTime(given.Truncate(time.Second))
}

func rank(conditionType string) int {
	switch conditionType {
	case "Available":
		return 0
	case "Ready":
		return 1
	default:
		return 2
	}
}
