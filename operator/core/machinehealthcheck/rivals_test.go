package machinehealthcheck

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// named returns a check that is so old and selects the Machines of a pool.
func named(name string, age time.Duration, pool string, change ...func(*clusterv1.MachineHealthCheck)) clusterv1.MachineHealthCheck {
	check := makeCheck(change...)
	check.Name, check.CreationTimestamp = name, ago(age)
	check.Spec.Selector = metav1.LabelSelector{MatchLabels: map[string]string{"pool": pool}}
	return *check
}

func TestAMachineIsLeftToTheOldestCheckThatSelectsIt(t *testing.T) {
	check := named("m", time.Hour, "a")
	for name, tc := range map[string]struct {
		others []clusterv1.MachineHealthCheck
		want   string
	}{
		"alone":                      {nil, ""},
		"an older one":               {[]clusterv1.MachineHealthCheck{named("z", 2*time.Hour, "a")}, "z"},
		"a newer one":                {[]clusterv1.MachineHealthCheck{named("a", time.Minute, "a")}, ""},
		"of one age, first by name":  {[]clusterv1.MachineHealthCheck{named("n", time.Hour, "a")}, ""},
		"of one age, second by name": {[]clusterv1.MachineHealthCheck{named("l", time.Hour, "a")}, "l"},
		"the oldest of two":          {[]clusterv1.MachineHealthCheck{named("y", 2*time.Hour, "a"), named("z", 3*time.Hour, "a")}, "z"},
		"of other Machines":          {[]clusterv1.MachineHealthCheck{named("z", 2*time.Hour, "b")}, ""},
		"of another cluster": {[]clusterv1.MachineHealthCheck{named("z", 2*time.Hour, "a", func(c *clusterv1.MachineHealthCheck) {
			c.Spec.ClusterName = "other"
		})}, ""},
		"one that goes": {[]clusterv1.MachineHealthCheck{named("z", 2*time.Hour, "a", func(c *clusterv1.MachineHealthCheck) {
			c.DeletionTimestamp = ptr.To(ago(time.Second))
		})}, ""},
		"one that is paused": {[]clusterv1.MachineHealthCheck{named("z", 2*time.Hour, "a", func(c *clusterv1.MachineHealthCheck) {
			c.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
		})}, "z"},
	} {
		t.Run(name, func(t *testing.T) {
			machine := makeMachine("x", func(m *clusterv1.Machine) { metav1.SetMetaDataLabel(&m.ObjectMeta, "pool", "a") })
			got := takenBy(rivalsOf(&check, append(tc.others, check)), machine)
			if got != tc.want {
				t.Errorf("left to %q, want %q", got, tc.want)
			}
		})
	}
}

func TestACheckSaysWhichMachinesItLeavesToOthers(t *testing.T) {
	s := makeSnapshot(makeCheck(), well("a"))
	s.taken = map[string][]string{"older": {"c", "b"}}
	p := makePlan(s)
	want := "left to the older MachineHealthCheck older, which selects them too: 2 Machines (b, c)"
	if d := cmp.Diff(want, p.allowed.Message); d != "" || p.allowed.Status != metav1.ConditionTrue {
		t.Errorf("RemediationAllowed %s (-want +got):\n%s", p.allowed.Status, d)
	}
}
