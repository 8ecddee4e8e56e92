package apply

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// owning is a member on which we own the fields.
func owning(t *testing.T, value, fields string) *unstructured.Unstructured {
	t.Helper()
	object := member(t, value)
	object.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: FieldManager, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(fields),
	}})
	return object
}

func TestWhatSomebodyChangedSinceTheLastApplyIsDrift(t *testing.T) {
	const all, less = `{"f:data":{"f:key":{}}}`, `{"f:data":{}}`
	applied := ownedDigest(owning(t, "new", all).GetManagedFields())
	edited := []Conflict{{Manager: "kubectl-edit", Field: ".data.key"}}
	for name, tc := range map[string]struct {
		owned   string
		live    *unstructured.Unstructured
		correct bool
		drifted bool
		force   bool
		refused bool
	}{
		"taken over, and to be corrected":                {owned: applied, live: owning(t, "old", less), correct: true, drifted: true, force: true},
		"taken over, and not to be corrected":            {owned: applied, live: owning(t, "old", less), refused: true},
		"in conflict though nobody took it over":         {owned: applied, live: owning(t, "old", all), correct: true, refused: true},
		"in conflict while it was not applied by us yet": {live: owning(t, "old", less), correct: true, refused: true},
		"deleted": {owned: applied, correct: true, drifted: true},
	} {
		t.Run(name, func(t *testing.T) {
			set := Set{Name: "demo", Objects: []*unstructured.Unstructured{parse(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: demo}, data: {key: new}}")}}
			prepared, err := set.prepare()
			if err != nil {
				t.Fatal(err)
			}
			state := ObjectState{Desired: prepared[0], Live: tc.live, Merged: owning(t, "new", all)}
			if tc.live != nil {
				state.Conflicts = edited
			}
			parent := &Parent{Name: "demo", State: StateApplied, Members: []Member{{ID: IDOf(prepared[0]), Owned: tc.owned}}}
			plan, err := Decide(set, Snapshot{Parent: parent, Objects: []ObjectState{state}}, Policy{CorrectDrift: tc.correct})
			var conflict *ConflictError
			var impossible *ImpossibleError
			if errors.As(err, &conflict) != tc.refused || errors.As(err, &impossible) != tc.refused {
				t.Fatalf("error %v, want a conflict: %t", err, tc.refused)
			}
			if tc.refused {
				return
			}
			if change := plan.Changes[0]; change.Drifted != tc.drifted || change.Force != tc.force {
				t.Errorf("drifted %t, force %t, want %t and %t", change.Drifted, change.Force, tc.drifted, tc.force)
			}
			if kept := plan.superset().Members[0].Owned; kept != tc.owned {
				t.Errorf("the record holds %q while the plan is carried out, want %q", kept, tc.owned)
			}
		})
	}
}
