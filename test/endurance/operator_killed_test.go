package endurance

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// chance returns random numbers whose seed is in the log of the test.
func chance(t *testing.T) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// killOperatorSoon kills the operator that came after the process last, at a moment that chance chooses.
func killOperatorSoon(t *testing.T, random *rand.Rand, last int) int {
	t.Helper()
	// The pause is the random moment of the kill, not a wait for something.
	time.Sleep(time.Duration(random.IntN(2000)) * time.Millisecond)
	return bed.KillOperator(t, last)
}

func TestAnOperatorKilledTenTimesCreatesExactlyWhatWasAsked(t *testing.T) {
	slow(t)
	const cluster, count = "killed", 20
	bed.Create(t, cluster, 0)

	random := chance(t)
	bed.Run(t, "kubectl", "machines", "scale", cluster+"-md-0", "--replicas", fmt.Sprint(count))
	last := 0
	for range 10 {
		last = killOperatorSoon(t, random, last)
	}

	bed.Run(t, "kubectl", "machines", "scale", cluster+"-md-0", "--replicas", fmt.Sprint(count), "--wait", "--timeout", "8m")
	bed.WantExactly(t, cluster, bed.Kubeconfig(t, cluster), count+1)
	bed.DeleteCluster(t, cluster)
}

func TestAnOperatorKilledTwentyTimesDuringARolloutStaysWithinItsBounds(t *testing.T) {
	slow(t)
	const cluster, count, deployment = "rolled", 10, "rolled-md-0"
	bed.Create(t, cluster, count)
	bed.Run(t, "kubectl", "patch", "machinedeployment/"+deployment, "--type=merge", "--patch",
		`{"spec":{"rollout":{"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":3,"maxUnavailable":0}}}}}`)
	bed.Run(t, "kubectl", "machines", "rollout", "status", deployment, "--timeout", "2m")
	outside := bed.WatchMachines(t, deployment, count)

	random := chance(t)
	last, rollouts := 0, 0
	for range 20 {
		if bed.Try(t, nil, "", "kubectl", "machines", "rollout", "status", deployment, "--timeout", "1ms").Code == 0 {
			bed.Run(t, "kubectl", "machines", "rollout", "restart", deployment)
			rollouts++
		}
		last = killOperatorSoon(t, random, last)
	}
	t.Logf("%d rollouts", rollouts)
	bed.Run(t, "kubectl", "machines", "rollout", "status", deployment, "--timeout", "8m")
	bed.WantExactly(t, cluster, bed.Kubeconfig(t, cluster), count+1)
	outside.WantWithin(t, count, count+3)
	bed.DeleteCluster(t, cluster)
}
