package apply

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ImpossibleError says why a set cannot be applied as it is, for every object that stands in the way. Nothing was
// written, and the same plan ends the same way until the set or the cluster changes.
type ImpossibleError struct{ Err error }

func (e *ImpossibleError) Error() string { return e.Err.Error() }

func (e *ImpossibleError) Unwrap() error { return e.Err }

// RefusedError is what the server said against an object, with what to do about it.
type RefusedError struct {
	Next string
	Err  error
}

func (e *RefusedError) Error() string {
	if e.Next == "" {
		return e.Err.Error()
	}
	return fmt.Sprintf("%v: %s", e.Err, e.Next)
}

func (e *RefusedError) Unwrap() error { return e.Err }

// refusal adds the next step to the server's answer.
func refusal(err error) error {
	refused := &RefusedError{Err: err}
	switch {
	case isImmutable(err):
		refused.Next = "the live object has another value there and the server never changes it: delete the object, then install again"
	case apierrors.IsForbidden(err):
		refused.Next = "ask for the permission, or use a context that has it"
	case apierrors.IsNotFound(err):
		refused.Next = "create the namespace first"
	}
	return refused
}

// isImmutable finds the server's words for a field that cannot change: it has no reason code of its own.
func isImmutable(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	for _, cause := range status.Status().Details.Causes {
		forbidden := cause.Type == metav1.CauseTypeForbidden || cause.Type == metav1.CauseTypeFieldValueInvalid
		if forbidden && (strings.Contains(cause.Message, "immutable") || strings.Contains(cause.Message, "may not change once set")) {
			return true
		}
	}
	return false
}
