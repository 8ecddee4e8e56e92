package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestEventsOfBothClustersAreInTheOrderOfTheirLastTime(t *testing.T) {
	at := func(second int) time.Time { return time.Date(2026, 1, 1, 10, 0, second, 0, time.UTC) }
	event := func(name string, change func(*corev1.Event)) corev1.Event {
		e := corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(at(0))}}
		change(&e)
		return e
	}
	management := []corev1.Event{
		event("series", func(e *corev1.Event) {
			e.EventTime = metav1.NewMicroTime(at(1))
			e.Series = &corev1.EventSeries{Count: 9, LastObservedTime: metav1.NewMicroTime(at(50))}
		}),
		event("once", func(e *corev1.Event) { e.EventTime = metav1.NewMicroTime(at(20)) }),
		event("created", func(*corev1.Event) {}),
	}
	workload := []corev1.Event{
		event("counted", func(e *corev1.Event) {
			e.FirstTimestamp, e.LastTimestamp, e.Count = metav1.NewTime(at(2)), metav1.NewTime(at(30)), 4
		}),
		event("same second", func(e *corev1.Event) { e.LastTimestamp = metav1.NewTime(at(20)) }),
	}
	var got []string
	for _, e := range mergeEvents(management, workload) {
		got = append(got, e.where+" "+e.Name)
	}
	want := []string{"management created", "management once", "workload same second", "workload counted", "management series"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	if a, b, c := timesSeen(&management[0]), timesSeen(&management[1]), timesSeen(&workload[0]); a != 9 || b != 1 || c != 4 {
		t.Errorf("counts %d, %d, %d", a, b, c)
	}
}

func TestTheLinesOfAMessageAreJoinedForATable(t *testing.T) {
	for message, want := range map[string]string{
		"":         "",
		"one line": "one line",
		"Drain not completed yet (started at X):\n* Pod a/db cannot be evicted: no\n* Pod a/web: evicted": "Drain not completed yet (started at X): Pod a/db cannot be evicted: no; Pod a/web: evicted",
		"* A: no\n* B:\n  * C: bad": "A: no; B: C: bad",
	} {
		if got := oneLine(message); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
