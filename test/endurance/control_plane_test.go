package endurance

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/millwright-dev/millwright/test/sandboxtest"
	"github.com/millwright-dev/millwright/test/witness"
)

// writing has a witness write to the cluster by its virtual address until the test ends. What it returns fails the test
// if a write that was acknowledged is lost, and says how long none was acknowledged.
func writing(t *testing.T, kubeconfig string) (writes *witness.Witness, settle func()) {
	t.Helper()
	store, err := witness.Connect(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	writes = witness.Start(store, 100*time.Millisecond)
	t.Cleanup(func() { writes.Stop() })
	return writes, func() {
		t.Helper()
		lost, err := writes.Lost(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		report := writes.Stop()
		t.Log(report)
		if len(lost) > 0 {
			t.Errorf("%d writes that were acknowledged are lost: %v", len(lost), lost)
		}
		if report.Acknowledged == 0 {
			t.Error("no write was acknowledged: nothing was tested")
		}
	}
}

func TestAControlPlaneGrowsToFiveAndShrinksToOneWithoutLosingAWrite(t *testing.T) {
	slow(t)
	t.Parallel()
	const cluster = "breathing"
	endpoint := bed.Endpoint(t)
	bed.Create(t, cluster, 0, "CONTROL_PLANE_ENDPOINT_IP="+endpoint)
	bed.WantMembers(t, cluster, 1)
	_, settle := writing(t, bed.Kubeconfig(t, cluster))

	scale := func(count int) {
		t.Helper()
		bed.Run(t, "kubectl", "machines", "scale", "kubeadmcontrolplane/"+cluster, "--replicas", fmt.Sprint(count), "--wait", "--timeout", "8m")
		bed.WantMembers(t, cluster, count)
	}
	scale(3)
	scale(5)
	scale(3)
	crash(t, cluster, endpoint)
	scale(1)
	settle()
	bed.DeleteCluster(t, cluster)
}

// crash kills the machine that holds the virtual address, which must move to another, and boots it again: the same member
// must come back.
func crash(t *testing.T, cluster, endpoint string) {
	t.Helper()
	dead, _ := bed.HolderOf(t, endpoint)
	bed.KillGuest(t, dead)
	sandboxtest.Eventually(t, time.Minute, func() string {
		holder, others := bed.HolderOf(t, endpoint)
		if holder == "" || holder == dead || slices.Contains(others, dead) {
			return fmt.Sprintf("the virtual address is held by %q and %v after %s crashed", holder, others, dead)
		}
		return ""
	})
	bed.Reset(t, dead)
	sandboxtest.Eventually(t, 3*time.Minute, func() string {
		if holder, others := bed.HolderOf(t, endpoint); !slices.Contains(append(others, holder), dead) {
			return fmt.Sprintf("%s does not offer to hold the virtual address again", dead)
		}
		return ""
	})
	bed.WaitReady(t, cluster)
	bed.WantMembers(t, cluster, 3)
}
