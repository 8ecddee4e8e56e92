package apply

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Conflict is a field of an object that another manager owns with another value.
type Conflict struct {
	Manager string
	Field   string
}

// ConflictError says which objects cannot be applied because somebody else owns fields of them.
type ConflictError struct {
	Objects map[ID][]Conflict
}

func (e *ConflictError) Error() string {
	ids := make([]ID, 0, len(e.Objects))
	for id := range e.Objects {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, compareIDs)
	var lines []string
	for _, id := range ids {
		for _, c := range e.Objects[id] {
			lines = append(lines, fmt.Sprintf("%s: %s is owned by %q with another value", id.Full(), c.Field, c.Manager))
		}
	}
	return strings.Join(lines, "\n")
}

// conflictManager reads the manager out of the server's words: apimachinery has no field for it.
var conflictManager = regexp.MustCompile(`conflict with "([^"]*)"`)

// conflictsIn returns the fields that a refused apply names, or nil when it was refused for another reason.
func conflictsIn(err error) []Conflict {
	var status apierrors.APIStatus
	if !apierrors.IsConflict(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	var conflicts []Conflict
	for _, cause := range status.Status().Details.Causes {
		if cause.Type != metav1.CauseTypeFieldManagerConflict {
			continue
		}
		manager := cause.Message
		if m := conflictManager.FindStringSubmatch(cause.Message); m != nil {
			manager = m[1]
		}
		conflicts = append(conflicts, Conflict{Manager: manager, Field: cause.Field})
	}
	return conflicts
}

// managers lists who is in the way, each once.
func managers(conflicts []Conflict) []string {
	var names []string
	for _, c := range conflicts {
		if !slices.Contains(names, c.Manager) {
			names = append(names, c.Manager)
		}
	}
	return names
}
