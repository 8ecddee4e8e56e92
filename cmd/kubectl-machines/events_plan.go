package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/millwright-dev/millwright/internal/cli"
)

// Where an event was recorded.
const (
	inManagement = "management"
	inWorkload   = "workload"
)

// seenEvent is an event of one of the two clusters.
type seenEvent struct {
	corev1.Event
	where string
}

var eventColumns = cli.Columns{
	{Name: "Last-Seen"}, {Name: "Cluster"}, {Name: "Type"}, {Name: "Reason"}, {Name: "Object"}, {Name: "Message"},
	{Name: "Count", Wide: true}, {Name: "First-Seen", Wide: true}, {Name: "Source", Wide: true},
}

// mergeEvents puts events in the order in which they were seen last. With the same time, which has seconds only, those
// of the management cluster are first: there things begin.
func mergeEvents(management, workload []corev1.Event) []seenEvent {
	var merged []seenEvent
	for _, e := range management {
		merged = append(merged, seenEvent{e, inManagement})
	}
	for _, e := range workload {
		merged = append(merged, seenEvent{e, inWorkload})
	}
	slices.SortStableFunc(merged, func(a, b seenEvent) int {
		return cmp.Or(lastSeen(&a.Event).Compare(lastSeen(&b.Event)), strings.Compare(a.where, b.where))
	})
	return merged
}

// lastSeen is when an event happened last. Which of its fields says so depends on the API that it was recorded with.
func lastSeen(e *corev1.Event) time.Time {
	switch {
	case e.Series != nil && !e.Series.LastObservedTime.IsZero():
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	}
	return firstSeen(e)
}

func firstSeen(e *corev1.Event) time.Time {
	switch {
	case !e.FirstTimestamp.IsZero():
		return e.FirstTimestamp.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	}
	return e.CreationTimestamp.Time
}

func timesSeen(e *corev1.Event) int32 {
	if e.Series != nil {
		return e.Series.Count
	}
	return max(e.Count, 1)
}

func eventTable(events []seenEvent, now time.Time) *metav1.Table {
	table := eventColumns.Table()
	for i := range events {
		e := &events[i].Event
		cli.AddRow(table, e,
			cli.Age(now, lastSeen(e)), events[i].where, e.Type, e.Reason,
			fmt.Sprintf("%s/%s", e.InvolvedObject.Kind, e.InvolvedObject.Name), oneLine(e.Message),
			strconv.Itoa(int(timesSeen(e))), cli.Age(now, firstSeen(e)), cmp.Or(e.ReportingController, e.Source.Component))
	}
	return table
}
