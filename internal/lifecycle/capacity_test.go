package lifecycle_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/lifecycle"
)

func TestCapacityIsTakenFromTheTemplateUnlessTheUserSaysIt(t *testing.T) {
	type m = map[string]string
	const prefix = lifecycle.CapacityPrefix
	cases := map[string]struct {
		capacity   m
		have, want m
	}{
		"a template that says it": {
			capacity: m{"cpu": "4", "memory": "8Gi", "ephemeral-storage": "20Gi", "pods": "110", "nvidia.com/gpu": "2"},
			want: m{
				prefix + "cpu": "4", prefix + "memory": "8Gi", prefix + "ephemeral-disk": "20Gi", prefix + "maxPods": "110",
				prefix + "gpu-type": "nvidia.com/gpu", prefix + "gpu-count": "2",
				lifecycle.CapacityAnnotation: "cpu,ephemeral-disk,gpu-count,gpu-type,maxPods,memory",
			},
		},
		"the user's word stays": {
			capacity: m{"cpu": "4", "memory": "8Gi"},
			have:     m{prefix + "cpu": "3"},
			want:     m{prefix + "cpu": "3", prefix + "memory": "8Gi", lifecycle.CapacityAnnotation: "memory"},
		},
		"another template": {
			capacity: m{"cpu": "8"},
			have:     m{prefix + "cpu": "4", prefix + "memory": "8Gi", lifecycle.CapacityAnnotation: "cpu,memory"},
			want:     m{prefix + "cpu": "8", lifecycle.CapacityAnnotation: "cpu"},
		},
		"a template that says nothing": {
			have: m{prefix + "cpu": "4", prefix + "labels": "mine", "other": "x", lifecycle.CapacityAnnotation: "cpu"},
			want: m{prefix + "labels": "mine", "other": "x"},
		},
		"what is no quantity": {capacity: m{"cpu": "some"}, want: m{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			deployment := &clusterv1.MachineDeployment{}
			deployment.Annotations = tc.have
			for range 2 {
				lifecycle.AnnotateCapacity(deployment, lifecycle.ParseCapacity(tc.capacity))
				if diff := cmp.Diff(tc.want, deployment.Annotations); diff != "" {
					t.Errorf("annotations (-want +got):\n%s", diff)
				}
			}
		})
	}
}
