package controlplane

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/workload"
)

// prodWithUIDs is prod with Machines that can be told apart as the API server would.
func prodWithUIDs(n int, changes ...func(*snapshot)) *snapshot {
	s := prod(n, n, changes...)
	for _, r := range s.replicas {
		r.machine.UID = types.UID(r.machine.Name)
		pod := s.workload.pods[podName("kube-apiserver", r.machine.Name)]
		if pod != nil {
			pod.Name = podName("kube-apiserver", r.machine.Name)
		}
	}
	return s
}

// startedAt gives the API server of the first machine a run that began then.
func startedAt(at time.Time) func(*snapshot) {
	return func(s *snapshot) {
		s.workload.pods["kube-apiserver-cp-1"].Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "kube-apiserver", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(at)}},
		}}
	}
}

// expires records that the certificates of the first machine end then, and asks for new ones 30 days before.
func expires(at time.Time) func(*snapshot) {
	return func(s *snapshot) {
		s.controlPlane.Spec.Rollout.Before.CertificatesExpiryDays = 30
		s.replicas[0].machine.CreationTimestamp = metav1.NewTime(noon.AddDate(-1, 0, 0))
		s.replicas[0].machine.Annotations[clusterv1.MachineCertificatesExpiryDateAnnotation] = at.Format(time.RFC3339)
	}
}

func TestCertificatesAreReadOnceForEachRunOfAnAPIServer(t *testing.T) {
	year := noon.AddDate(1, 0, 0)
	read := func(at, expiry time.Time) map[types.UID]reading {
		return map[types.UID]reading{"cp-1": {"", at, expiry, 1}}
	}
	tests := map[string]struct {
		s     *snapshot
		known map[types.UID]reading
		want  []string
	}{
		"not read yet":                         {prodWithUIDs(2), nil, []string{"cp-1", "cp-2"}},
		"read long ago, and nothing happened":  {prodWithUIDs(1), read(noon.AddDate(0, -6, 0), year), nil},
		"the API server was started again":     {prodWithUIDs(1, startedAt(noon)), read(noon.Add(-time.Hour), year), []string{"cp-1"}},
		"it failed a moment ago":               {prodWithUIDs(1), read(noon.Add(-time.Second), time.Time{}), nil},
		"it failed a while ago":                {prodWithUIDs(1), read(noon.Add(-expiryAgain), time.Time{}), []string{"cp-1"}},
		"it failed again and again":            {prodWithUIDs(1), map[types.UID]reading{"cp-1": {"", noon.Add(-expiryAgain), time.Time{}, 2}}, nil},
		"it has failed for ages":               {prodWithUIDs(1), map[types.UID]reading{"cp-1": {"", noon.Add(-expiryAgainMax), time.Time{}, 1000}}, []string{"cp-1"}},
		"the machine is to be replaced for it": {prodWithUIDs(1, expires(noon.AddDate(0, 0, 29))), read(noon.AddDate(0, 0, -2), year), []string{"cp-1"}},
		"it was looked at again for that":      {prodWithUIDs(1, expires(noon.AddDate(0, 0, 29))), read(noon.Add(-time.Minute), year), nil},
		"there is time left":                   {prodWithUIDs(1, expires(noon.AddDate(0, 0, 31))), read(noon.AddDate(0, 0, -2), year), nil},
		"the API server is not ready":          {prodWithUIDs(2, podFails("kube-apiserver", 1)), nil, []string{"cp-1"}},
		"there is no Node yet":                 {prodWithUIDs(2, machineLacksNode(1)), nil, []string{"cp-1"}},
		"the machine is going":                 {prodWithUIDs(2, going(1, false)), nil, []string{"cp-1"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for r := range expiriesToRead(tc.s, tc.s.workload.nodes, tc.s.workload.pods, tc.known) {
				got = append(got, r.machine.Name)
			}
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatWasReadIsKnownUntilItChanges(t *testing.T) {
	calls := 0
	expiry, failure := noon.AddDate(1, 0, 0), error(nil)
	r := &Reconciler{readExpiry: func(context.Context, *workload.Connection, *corev1.Pod) (time.Time, error) {
		calls++
		return expiry, failure
	}}
	s := prodWithUIDs(1)
	look := func(wantCalls int, want map[string]time.Time, wantAgain time.Duration) {
		t.Helper()
		got, again := r.readExpiries(context.Background(), s, nil, s.workload)
		if diff := cmp.Diff(want, got); diff != "" || calls != wantCalls || again != wantAgain {
			t.Errorf("%d handshakes, want %d; again in %s, want %s (-want +got):\n%s", calls, wantCalls, again, wantAgain, diff)
		}
	}
	look(1, map[string]time.Time{"cp-1": noon.AddDate(1, 0, 0)}, 0)
	s.now = noon.Add(time.Hour)
	look(1, map[string]time.Time{"cp-1": noon.AddDate(1, 0, 0)}, 0)

	startedAt(s.now)(s)
	failure = errors.New("connection refused")
	look(2, map[string]time.Time{}, expiryAgain)
	s.now = s.now.Add(expiryAgain)
	look(3, map[string]time.Time{}, 2*expiryAgain)
	s.now, failure, expiry = s.now.Add(2*expiryAgain), nil, noon.AddDate(2, 0, 0)
	look(4, map[string]time.Time{"cp-1": noon.AddDate(2, 0, 0)}, 0)

	s.replicas = nil
	look(4, map[string]time.Time{}, 0)
	r.readings.forget(types.NamespacedName{Namespace: "fleet", Name: "prod"})
	if len(r.readings.last) != 0 {
		t.Errorf("left are %v", r.readings.last)
	}
}

func TestAMachineWhoseCertificatesWereRenewedOnItIsNotReplaced(t *testing.T) {
	s := prodWithUIDs(1, expires(noon.AddDate(0, 0, 10)))
	machine := s.replicas[0].machine
	if len(differences(s, s.replicas[0])) != 1 {
		t.Fatal("the machine is not due")
	}
	if !setExpiry(machine, noon.AddDate(1, 0, 0)) {
		t.Fatal("nothing was recorded")
	}
	machine.Status.CertificatesExpiryDate = metav1.NewTime(noon.AddDate(0, 0, 10)) // as it was before the controller of Machines has come to it
	if got := differences(s, s.replicas[0]); len(got) != 0 {
		t.Errorf("it is replaced: %q", got)
	}
	if setExpiry(machine, noon.AddDate(1, 0, 0)) || setExpiry(machine, time.Time{}) {
		t.Error("what is recorded is written again")
	}
}
