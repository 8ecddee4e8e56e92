package lifecycle_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/lifecycle"
)

func TestRolloutBoundsRoundAsDeploymentsDo(t *testing.T) {
	number := func(n int32) *intstr.IntOrString { v := intstr.FromInt32(n); return &v }
	text := func(s string) *intstr.IntOrString { v := intstr.FromString(s); return &v }
	cases := map[string]struct {
		surge, unavailable *intstr.IntOrString
		replicas           int32
		strategy           clusterv1.MachineDeploymentRolloutStrategyType
		want               lifecycle.Bounds
	}{
		"unset is one and none":                {replicas: 10, want: lifecycle.Bounds{Surge: 1}},
		"numbers":                              {surge: number(3), unavailable: number(2), replicas: 10, want: lifecycle.Bounds{Surge: 3, Unavailable: 2}},
		"surge rounds up, unavailable down":    {surge: text("25%"), unavailable: text("25%"), replicas: 10, want: lifecycle.Bounds{Surge: 3, Unavailable: 2}},
		"both nothing means one unavailable":   {surge: number(0), unavailable: number(0), replicas: 10, want: lifecycle.Bounds{Unavailable: 1}},
		"both rounded to nothing, too":         {surge: number(0), unavailable: text("10%"), replicas: 5, want: lifecycle.Bounds{Unavailable: 1}},
		"no more unavailable than there are":   {surge: number(0), unavailable: number(7), replicas: 5, want: lifecycle.Bounds{Unavailable: 5}},
		"more than all may surge":              {surge: text("200%"), replicas: 3, want: lifecycle.Bounds{Surge: 6}},
		"what does not parse is nothing":       {surge: number(1), unavailable: text("many"), replicas: 4, want: lifecycle.Bounds{Surge: 1}},
		"a negative number is nothing":         {surge: number(-1), unavailable: number(1), replicas: 4, want: lifecycle.Bounds{Unavailable: 1}},
		"none wanted":                          {surge: number(3), unavailable: number(2), replicas: 0, want: lifecycle.Bounds{}},
		"a rollout on deletion has no surplus": {strategy: clusterv1.OnDeleteMachineDeploymentStrategyType, surge: number(3), replicas: 4, want: lifecycle.Bounds{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			strategy := clusterv1.MachineDeploymentRolloutStrategy{Type: tc.strategy}
			strategy.RollingUpdate.MaxSurge, strategy.RollingUpdate.MaxUnavailable = tc.surge, tc.unavailable
			if got := lifecycle.RolloutBounds(strategy, tc.replicas); got != tc.want {
				t.Errorf("bounds are %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestBoundsThatDoNotParseAreTold(t *testing.T) {
	strategy := clusterv1.MachineDeploymentRolloutStrategy{}
	if err := lifecycle.CheckRolloutBounds(strategy); err != nil {
		t.Errorf("unset bounds are refused: %v", err)
	}
	good, bad := intstr.FromString("20%"), intstr.FromString("20 percent")
	strategy.RollingUpdate.MaxSurge, strategy.RollingUpdate.MaxUnavailable = &good, &bad
	err := lifecycle.CheckRolloutBounds(strategy)
	if err == nil || !strings.Contains(err.Error(), `maxUnavailable is "20 percent" and counts as 0`) || strings.Contains(err.Error(), "maxSurge") {
		t.Errorf("error is %v", err)
	}
}
