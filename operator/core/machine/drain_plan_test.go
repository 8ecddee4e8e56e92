package machine

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/drain"
	"github.com/millwright-dev/millwright/internal/workload"
)

func TestADrainIsSkippedOnlyWhenThereIsNothingToSave(t *testing.T) {
	now := time.Unix(10000, 0)
	silentFor := func(d time.Duration) *corev1.Node {
		return &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: metav1.NewTime(now.Add(-d)),
		}}}}
	}
	deleted := metav1.NewTime(now)
	for name, tc := range map[string]struct {
		change func(*snapshot)
		want   bool
	}{
		"a Node that lives": {func(*snapshot) {}, false},
		"the Machine asks for it": {func(s *snapshot) {
			s.machine.Annotations = map[string]string{clusterv1.ExcludeNodeDrainingAnnotation: ""}
		}, true},
		"the Cluster is being deleted":       {func(s *snapshot) { s.cluster.DeletionTimestamp = &deleted }, true},
		"the Cluster is gone":                {func(s *snapshot) { s.cluster = nil }, true},
		"the API server goes with it":        {func(s *snapshot) { s.lastControlPlane = true }, true},
		"the machine is being destroyed":     {func(s *snapshot) { s.infrastructure.obj.SetDeletionTimestamp(&deleted) }, true},
		"the drain is over":                  {func(s *snapshot) { s.machine.Status.Deletion.WaitForPreTerminateHookStartTime = deleted }, true},
		"the Node is gone":                   {func(s *snapshot) { s.node = nil }, true},
		"there never was a Node":             {func(s *snapshot) { s.node, s.connection, s.nodeBefore = nil, nil, "" }, true},
		"the API server does not answer":     {func(s *snapshot) { s.node, s.connection = nil, nil }, false},
		"it is not clear which Node it is":   {func(s *snapshot) { s.node, s.nodeErr = nil, errors.New("two") }, false},
		"the kubelet is silent for a minute": {func(s *snapshot) { s.node = silentFor(time.Minute) }, false},
		"the kubelet is silent for good":     {func(s *snapshot) { s.node = silentFor(5 * time.Minute) }, true},
		"the Node is not ready, but answers": {func(s *snapshot) { s.node.Status.Conditions[0].Status = corev1.ConditionFalse }, false},
		"the Machine excludes only the other": {func(s *snapshot) {
			s.machine.Annotations = map[string]string{clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation: ""}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &snapshot{
				now:            now,
				machine:        &clusterv1.Machine{Status: clusterv1.MachineStatus{Deletion: &clusterv1.MachineDeletionStatus{}}},
				cluster:        &clusterv1.Cluster{},
				infrastructure: external{obj: &unstructured.Unstructured{Object: map[string]any{}}},
				connection:     &workload.Connection{},
				nodeBefore:     "n",
				node: &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{
					Type: corev1.NodeReady, Status: corev1.ConditionTrue,
				}}}},
			}
			tc.change(s)
			if got := skipDrain(s); got != tc.want {
				t.Errorf("skipped %v, want %v", got, tc.want)
			}
		})
	}
}

func TestTheMessageOfADrainTellsSinceWhenItWaits(t *testing.T) {
	started := time.Date(2026, 11, 30, 21, 0, 0, 0, time.UTC)
	got := drainMessage(drain.Progress{Terminating: []string{"b/web"}, Later: []string{"c/db"}}, started)
	want := `Drain not completed yet (started at 2026-11-30T21:00:00Z):
* Pod b/web: evicted, not yet terminated
* Pod c/db: evicted when the pods of a lower order are gone`
	if got != want {
		t.Errorf("message:\n%s\nwant:\n%s", got, want)
	}
}
