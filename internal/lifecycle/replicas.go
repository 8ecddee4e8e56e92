package lifecycle

import (
	"fmt"
	"math"
	"strconv"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// DefaultReplicas returns what replicas becomes where it is unset: 1, or with the autoscaler's annotations the number
// before kept inside its bounds. before is nil for a new object, which gets the minimum.
// The rule is documented at MachineDeploymentSpec.Replicas upstream.
func DefaultReplicas(annotations map[string]string, before *int32) (int32, error) {
	low, hasLow := annotations[clusterv1.AutoscalerMinSizeAnnotation]
	high, hasHigh := annotations[clusterv1.AutoscalerMaxSizeAnnotation]
	if !hasLow || !hasHigh {
		return 1, nil
	}
	minimum, err := bound(clusterv1.AutoscalerMinSizeAnnotation, low)
	if err != nil {
		return 0, err
	}
	maximum, err := bound(clusterv1.AutoscalerMaxSizeAnnotation, high)
	if err != nil {
		return 0, err
	}
	if minimum > maximum {
		return 0, fmt.Errorf("annotation %s is %d, more than %s, which is %d: mend one of them, or set spec.replicas",
			clusterv1.AutoscalerMinSizeAnnotation, minimum, clusterv1.AutoscalerMaxSizeAnnotation, maximum)
	}
	if before == nil {
		return minimum, nil
	}
	return min(max(*before, minimum), maximum), nil
}

func bound(annotation, value string) (int32, error) {
	n, err := strconv.ParseInt(value, 10, 32)
	if err != nil || n < 0 || n > math.MaxInt32 {
		return 0, fmt.Errorf("annotation %s is %q, not a number of machines: mend it, or set spec.replicas", annotation, value)
	}
	return int32(n), nil
}
