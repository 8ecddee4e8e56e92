package lifecycle_test

import (
	"testing"

	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/lifecycle"
)

func TestDefaultReplicasStaysInsideTheAutoscalersBounds(t *testing.T) {
	bounds := func(low, high string) map[string]string {
		return map[string]string{clusterv1.AutoscalerMinSizeAnnotation: low, clusterv1.AutoscalerMaxSizeAnnotation: high}
	}
	cases := map[string]struct {
		annotations map[string]string
		before      *int32
		want        int32
		wantErr     bool
	}{
		"no autoscaler":                 {want: 1},
		"no autoscaler, had some":       {before: ptr.To[int32](5), want: 1},
		"only one bound is no bound":    {annotations: map[string]string{clusterv1.AutoscalerMinSizeAnnotation: "3"}, want: 1},
		"new object gets the minimum":   {annotations: bounds("3", "10"), want: 3},
		"below the minimum":             {annotations: bounds("3", "10"), before: ptr.To[int32](1), want: 3},
		"above the maximum":             {annotations: bounds("3", "10"), before: ptr.To[int32](20), want: 10},
		"inside is kept":                {annotations: bounds("3", "10"), before: ptr.To[int32](7), want: 7},
		"scale to zero":                 {annotations: bounds("0", "10"), before: ptr.To[int32](0), want: 0},
		"not a number":                  {annotations: bounds("three", "10"), wantErr: true},
		"negative":                      {annotations: bounds("-1", "10"), wantErr: true},
		"minimum larger than a maximum": {annotations: bounds("11", "10"), wantErr: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := lifecycle.DefaultReplicas(tc.annotations, tc.before)
			if (err != nil) != tc.wantErr || got != tc.want {
				t.Errorf("DefaultReplicas = %d, %v; want %d, error %v", got, err, tc.want, tc.wantErr)
			}
		})
	}
}
