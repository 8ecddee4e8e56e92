package lifecycle_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/lifecycle"
)

func TestPropagateTakesAwayOnlyWhatItGave(t *testing.T) {
	type m = map[string]string
	machine := &clusterv1.Machine{}
	machine.Labels, machine.Annotations = m{"mine": "x", "shared": "mine"}, m{"mine": "x"}

	steps := []struct {
		labels, annotations         m
		wantLabels, wantAnnotations m
	}{
		{
			labels: m{clusterv1.ClusterNameLabel: "prod", "team": "a", "shared": "theirs"}, annotations: m{"note": "y"},
			wantLabels:      m{clusterv1.ClusterNameLabel: "prod", "mine": "x", "shared": "theirs", "team": "a"},
			wantAnnotations: m{"mine": "x", "note": "y", lifecycle.PropagatedAnnotation: "shared,team;note"},
		},
		{
			labels: m{clusterv1.ClusterNameLabel: "prod", "team": "b"}, annotations: m{},
			wantLabels:      m{clusterv1.ClusterNameLabel: "prod", "mine": "x", "team": "b"},
			wantAnnotations: m{"mine": "x", lifecycle.PropagatedAnnotation: "team;"},
		},
		{
			labels:          m{clusterv1.ClusterNameLabel: "prod"},
			wantLabels:      m{clusterv1.ClusterNameLabel: "prod", "mine": "x"},
			wantAnnotations: m{"mine": "x"},
		},
	}
	for i, step := range steps {
		if lifecycle.Propagated(machine, step.labels, step.annotations) {
			t.Errorf("step %d: nothing to do, it says", i)
		}
		lifecycle.Propagate(machine, step.labels, step.annotations)
		if diff := cmp.Diff(step.wantLabels, machine.Labels); diff != "" {
			t.Errorf("step %d: labels (-want +got):\n%s", i, diff)
		}
		if diff := cmp.Diff(step.wantAnnotations, machine.Annotations); diff != "" {
			t.Errorf("step %d: annotations (-want +got):\n%s", i, diff)
		}
		if !lifecycle.Propagated(machine, step.labels, step.annotations) {
			t.Errorf("step %d: it is not seen as done", i)
		}
	}
}
