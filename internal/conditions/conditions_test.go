package conditions_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/conditions"
)

func TestSetMovesTheTransitionTimeOnlyWithTheStatus(t *testing.T) {
	past := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	given := metav1.NewTime(time.Date(2026, 6, 7, 8, 9, 10, 0, time.UTC))
	for name, tc := range map[string]struct {
		set  metav1.Condition
		want metav1.Time
	}{
		"the same status":                   {conditions.True("Ready", "Other", "other"), past},
		"the same status with a given time": {metav1.Condition{Type: "Ready", Status: "True", Reason: "R", LastTransitionTime: given}, past},
		"another status with a given time":  {metav1.Condition{Type: "Ready", Status: "False", Reason: "R", LastTransitionTime: given}, given},
	} {
		t.Run(name, func(t *testing.T) {
			m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Generation: 7}}
			m.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "True", Reason: "R", LastTransitionTime: past}}
			conditions.Set(m, tc.set)
			got := conditions.Get(m, "Ready")
			if !got.LastTransitionTime.Equal(&tc.want) {
				t.Errorf("lastTransitionTime %s, want %s", got.LastTransitionTime, tc.want)
			}
			if got.ObservedGeneration != 7 {
				t.Errorf("observedGeneration %d, want the object's", got.ObservedGeneration)
			}
		})
	}
}

func TestSetSortsByTypeWithAvailableAndReadyFirst(t *testing.T) {
	m := &clusterv1.Machine{}
	for _, name := range []string{"Zeta", "Ready", "Alpha", "Available"} {
		conditions.Set(m, conditions.True(name, "R", ""))
	}
	var got []string
	for _, c := range m.Status.Conditions {
		got = append(got, c.Type)
	}
	if d := cmp.Diff([]string{"Available", "Ready", "Alpha", "Zeta"}, got); d != "" {
		t.Errorf("order (-want +got):\n%s", d)
	}
}

func TestAMessageWithoutArgumentsMayHoldPercentSigns(t *testing.T) {
	if got := conditions.False("T", "R", "100% full").Message; got != "100% full" {
		t.Errorf("message %q", got)
	}
}

func TestSummaryIsAsBadAsItsWorstPart(t *testing.T) {
	reasons := conditions.Reasons{True: "Good", False: "Bad", Unknown: "Unclear"}
	for name, tc := range map[string]struct {
		have  []metav1.Condition
		parts []conditions.Part
		want  metav1.Condition
	}{
		"all good": {
			have:  []metav1.Condition{conditions.True("A", "R", ""), conditions.False("Deleting", "R", "")},
			parts: []conditions.Part{{Type: "A"}, {Type: "Deleting", Negative: true}},
			want:  conditions.True("Sum", "Good", ""),
		},
		"one bad and one unknown": {
			have:  []metav1.Condition{conditions.Unknown("A", "R", "who knows"), conditions.False("B", "R", "broken")},
			parts: []conditions.Part{{Type: "A"}, {Type: "B"}},
			want:  conditions.False("Sum", "Bad", "* A: who knows\n* B: broken"),
		},
		"a missing part is unknown": {
			parts: []conditions.Part{{Type: "A"}},
			want:  conditions.Unknown("Sum", "Unclear", "* A: Condition A not yet reported"),
		},
		"a missing optional part does not count": {
			parts: []conditions.Part{{Type: "A", Optional: true}},
			want:  conditions.True("Sum", "Good", ""),
		},
		"a list goes below its subject": {
			have:  []metav1.Condition{conditions.False("A", "R", "* one\n* two")},
			parts: []conditions.Part{{Type: "A"}},
			want:  conditions.False("Sum", "Bad", "* A:\n  * one\n  * two"),
		},
		"a brief message instead of a long one": {
			have:  []metav1.Condition{conditions.True("Deleting", "R", "* pod a\n* pod b")},
			parts: []conditions.Part{{Type: "Deleting", Negative: true, Brief: "under way"}},
			want:  conditions.False("Sum", "Bad", "* Deleting: under way"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := &clusterv1.Machine{}
			m.Status.Conditions = tc.have
			if d := cmp.Diff(tc.want, conditions.Summary(m, "Sum", reasons, tc.parts)); d != "" {
				t.Errorf("summary (-want +got):\n%s", d)
			}
		})
	}
}
