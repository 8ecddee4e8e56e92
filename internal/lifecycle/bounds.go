package lifecycle

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Bounds are what a rollout keeps within, in Machines.
type Bounds struct {
	// Surge is how many Machines there may be more than wanted.
	Surge int32
	// Unavailable is how many may be missing from those wanted.
	Unavailable int32
}

// RolloutBounds resolves maxSurge and maxUnavailable for a number of replicas, as Deployments do: a percentage of surge
// rounds up, one of unavailable rounds down, and where both come to 0 one may be unavailable, or nothing could ever
// move. What does not parse counts as 0. A strategy without a rolling update has no play at all.
func RolloutBounds(strategy clusterv1.MachineDeploymentRolloutStrategy, replicas int32) Bounds {
	if strategy.Type == clusterv1.OnDeleteMachineDeploymentStrategyType || replicas <= 0 {
		return Bounds{}
	}
	bounds := Bounds{
		Surge:       resolve(strategy.RollingUpdate.MaxSurge, 1, replicas, true),
		Unavailable: min(resolve(strategy.RollingUpdate.MaxUnavailable, 0, replicas, false), replicas),
	}
	if bounds == (Bounds{}) {
		bounds.Unavailable = 1
	}
	return bounds
}

// CheckRolloutBounds tells which of the two does not parse, and what follows from it.
func CheckRolloutBounds(strategy clusterv1.MachineDeploymentRolloutStrategy) error {
	var errs []error
	check := func(field string, value *intstr.IntOrString) {
		if value == nil {
			return
		}
		if _, err := intstr.GetScaledValueFromIntOrPercent(value, 1, true); err != nil {
			errs = append(errs, fmt.Errorf(`spec.rollout.strategy.rollingUpdate.%s is %q and counts as 0: write a number or a percentage like "20%%"`, field, value.String()))
		}
	}
	check("maxSurge", strategy.RollingUpdate.MaxSurge)
	check("maxUnavailable", strategy.RollingUpdate.MaxUnavailable)
	return errors.Join(errs...)
}

func resolve(value *intstr.IntOrString, unset, replicas int32, roundUp bool) int32 {
	scaled, err := intstr.GetScaledValueFromIntOrPercent(ptr.To(ptr.Deref(value, intstr.FromInt32(unset))), int(replicas), roundUp)
	if err != nil {
		return 0
	}
	return int32(max(scaled, 0))
}
