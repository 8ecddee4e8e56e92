package controlplane

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/conditions"
)

// failed marks Machines as a health check does that wants them replaced.
func failed(indexes ...int) func(*snapshot) {
	return func(s *snapshot) {
		for _, i := range indexes {
			machine := s.replicas[i].machine
			conditions.Set(machine, conditions.False(clusterv1.MachineHealthCheckSucceededCondition, "UnhealthyNode", ""))
			conditions.Set(machine, conditions.False(clusterv1.MachineOwnerRemediatedCondition, clusterv1.MachineOwnerRemediatedWaitingForRemediationReason, ""))
		}
	}
}

func wellAgain(i int) func(*snapshot) {
	return func(s *snapshot) {
		failed(i)(s)
		conditions.Set(s.replicas[i].machine, conditions.True(clusterv1.MachineHealthCheckSucceededCondition, clusterv1.MachineHealthCheckSucceededReason, ""))
	}
}

// inPlaceOf tells that a Machine was made so long ago in the place of one that failed.
func inPlaceOf(i int, machine string, ago time.Duration, retries int32) func(*snapshot) {
	return func(s *snapshot) {
		a := attempt{Machine: machine, Time: metav1.NewTime(noon.Add(-ago)), Retries: retries}
		s.replicas[i].machine.Annotations[controlplanev1.RemediationForAnnotation] = a.String()
	}
}

func limited(maxRetry, retryPeriod, minHealthy int32) func(*snapshot) {
	return func(s *snapshot) {
		s.controlPlane.Spec.Remediation = controlplanev1.KubeadmControlPlaneRemediationSpec{MaxRetry: &maxRetry, RetryPeriodSeconds: &retryPeriod, MinHealthyPeriodSeconds: &minHealthy}
	}
}

func noLeader(s *snapshot) {
	disconnected(s)
	s.workload.lastSeen = noon.Add(-time.Hour)
}

func TestAFailedMachineIsReplacedOnlyWhenNothingElseIsLost(t *testing.T) {
	join := "join prod-" + slotSuffix("uid", 0)
	const deleting, deferred, refused = "MachineDeleting: Machine is being deleted", "RemediationDeferred: ", "CannotBeRemediated: "
	tests := map[string]struct {
		s    *snapshot
		want string
		// told is in what OwnerRemediated says of the Machine that was given first; "-" when it is taken away.
		of   int
		told string
	}{
		"one of three that is dead":            {prod(3, 3, failed(1), podFails("etcd", 1)), "remove cp-2", 1, deleting},
		"one that runs, since a person asks":   {prod(3, 3, failed(1)), "remove cp-2", 1, deleting},
		"one of two that are dead, of five":    {prod(5, 5, failed(1, 2), podFails("etcd", 1), podFails("etcd", 2)), "remove cp-3", 2, deleting},
		"the other one waits its turn":         {prod(5, 5, failed(1, 2), podFails("etcd", 1), podFails("etcd", 2)), "remove cp-3", 1, deferred + "Machine cp-3 is replaced first"},
		"the second one, before a third comes": {prod(4, 5, failed(1), podFails("etcd", 1)), "remove cp-2", 1, deleting},
		"one that never joined goes first":     {prod(5, 5, failed(1, 2, 4), machineLacksNode(2)), "remove cp-3", 4, deferred + "Machine cp-3 is replaced first"},
		"nothing goes at the price of quorum":  {prod(3, 3, failed(1), podFails("etcd", 1), podFails("etcd", 2)), "", 1, refused + "Nothing is deleted: 2 etcd members would be left, 1 of them healthy"},
		"nothing goes when quorum is lost":     {prod(3, 3, failed(1), noLeader), "", 1, refused + "Nothing is deleted while the API server of the Cluster does not answer:\n1. Start the hosts of Machines cp-1, cp-2, cp-3: as soon as 2 of the 3 run"},
		"nor before another one is gone":       {prod(3, 3, failed(1), going(0, false)), "", 1, deferred + "Machine cp-1 is being deleted"},
		"nor before another one has joined":    {prod(3, 3, failed(1), machineLacksNode(2)), "", 1, deferred + "Machine cp-3 has no Node yet"},
		"it goes when another waits for it":    {prod(3, 3, failed(1), podFails("etcd", 1), going(0, true)), "remove cp-2, blocked", 1, deleting},
		"it stays when nothing would follow":   {prod(3, 3, failed(1), asks("v1.36.0")), "blocked", 1, deferred + "spec.version is v1.36.0"},
		"it stays when a person says so": {prod(3, 3, failed(1), func(s *snapshot) {
			s.replicas[1].machine.Annotations[clusterv1.MachineSkipRemediationAnnotation] = ""
		}), "", 1, "WaitingForRemediation: "},
		"one that is well again":                    {prod(3, 3, wellAgain(1)), "", 1, "-"},
		"the only one, dead":                        {prod(1, 1, failed(0), noLeader), "", 0, refused + "Nothing is deleted while the API server of the Cluster does not answer:\n1. Start the host of Machine cp-1: what etcd holds is there alone"},
		"the only one, in part":                     {prod(1, 1, failed(0), podFails("kube-scheduler", 0)), "", 0, refused + "It is the only machine of the control plane, and as it is no other can take its place:\n* Machine cp-1: SchedulerPodHealthy is False"},
		"the only one, which serves":                {prod(1, 1, failed(0)), join, 0, deferred + "Another machine takes the place of this one first"},
		"the only one, when another is there":       {prod(2, 1, failed(0)), "remove cp-1", 0, deleting},
		"the first one, before kubeadm init":        {prod(1, 3, uninitialized, failed(0)), "remove cp-1", 0, deleting},
		"the new one failed: a retry":               {prod(3, 3, failed(1), inPlaceOf(1, "cp-9", 30*time.Minute, 0), limited(2, 60, 3600)), "remove cp-2", 1, deleting},
		"a retry too early":                         {prod(3, 3, failed(1), inPlaceOf(1, "cp-9", 30*time.Second, 0), limited(2, 60, 3600)), "", 1, deferred + "The machine in whose place this one came was replaced at 2026-11-30T11:59:30Z"},
		"a retry too many":                          {prod(3, 3, failed(1), inPlaceOf(1, "cp-9", 30*time.Minute, 2), limited(2, 60, 3600)), "", 1, refused + "3 machines in the place of Machine cp-9 failed in turn, and spec.remediation.maxRetry is 2"},
		"one that was well for long is no retry":    {prod(3, 3, failed(1), inPlaceOf(1, "cp-9", 2*time.Hour, 2), limited(2, 60, 3600)), "remove cp-2", 1, deleting},
		"a record that cannot be read is no retry":  {prod(3, 3, failed(1), func(s *snapshot) { s.replicas[1].machine.Annotations[controlplanev1.RemediationForAnnotation] = "?" }, limited(0, 60, 3600)), "remove cp-2", 1, deleting},
		"with an etcd outside another must serve":   {prod(3, 3, externalEtcd, failed(1), podFails("kube-apiserver", 0), podFails("kube-apiserver", 2)), "blocked", 1, refused + "Nothing is deleted: no other machine is known to run a healthy API server"},
		"with an etcd outside the only one is kept": {prod(1, 1, externalEtcd, failed(0), disconnected), "blocked", 0, refused + "It is the only machine"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := makePlan(tc.s)
			if diff := cmp.Diff(tc.want, summary(p)); diff != "" {
				t.Errorf("(-want +got):\n%s\nblocked: %v", diff, p.blocked)
			}
			machine := tc.s.replicas[tc.of].machine
			told := "-"
			if c := conditions.Get(machine, clusterv1.MachineOwnerRemediatedCondition); c != nil {
				told = c.Reason + ": " + c.Message
			}
			for _, v := range p.remediation.tell {
				switch {
				case v.replica.machine != machine:
				case v.condition == nil:
					told = "-"
				default:
					told = v.condition.Reason + ": " + v.condition.Message
				}
			}
			if !strings.HasPrefix(told, tc.told) {
				t.Errorf("told %q, want %q", told, tc.told)
			}
		})
	}
}

func TestAttemptsAreCountedAlongTheMachinesThatFollowEachOther(t *testing.T) {
	tests := map[string]struct {
		s    *snapshot
		want attempt
	}{
		"the first":                  {prod(3, 3, failed(1)), attempt{Machine: "cp-2", Time: metav1.NewTime(noon)}},
		"a retry":                    {prod(3, 3, failed(1), inPlaceOf(1, "cp-9", time.Minute, 3)), attempt{Machine: "cp-9", Time: metav1.NewTime(noon), Retries: 4}},
		"after it was well for long": {prod(3, 3, failed(1), inPlaceOf(1, "cp-9", time.Hour, 3)), attempt{Machine: "cp-2", Time: metav1.NewTime(noon)}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := planRemediation(tc.s, "")
			if diff := cmp.Diff(tc.want, p.attempt); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
			// Cut short here, a second try comes to the same.
			tc.s.controlPlane.Annotations = map[string]string{controlplanev1.RemediationInProgressAnnotation: p.attempt.String()}
			if again := planRemediation(tc.s, ""); again.attempt != p.attempt || again.remove != p.remove || again.settled {
				t.Errorf("a second try: %+v", again)
			}
			made := machineFor(tc.s, newMachine{name: "cp-4", join: true})
			if got, _ := readAttempt(made.Annotations, controlplanev1.RemediationForAnnotation); !got.Time.Equal(&p.attempt.Time) || got.Machine != p.attempt.Machine || got.Retries != p.attempt.Retries {
				t.Errorf("the next Machine bears %+v, want %+v", got, p.attempt)
			}
			want := controlplanev1.LastRemediationStatus{Machine: p.attempt.Machine, Time: p.attempt.Time, RetryCount: &p.attempt.Retries}
			if got := lastRemediation(tc.s); got.Machine != want.Machine || !got.Time.Equal(&want.Time) || *got.RetryCount != *want.RetryCount {
				t.Errorf("status.lastRemediation is %+v, want %+v", got, want)
			}
		})
	}
}

func TestAnAttemptThatHasEndedIsForgotten(t *testing.T) {
	begun := func(s *snapshot) {
		s.controlPlane.Annotations = map[string]string{controlplanev1.RemediationInProgressAnnotation: attempt{Machine: "cp-9"}.String()}
	}
	tests := map[string]struct {
		s    *snapshot
		want bool
	}{
		"the machine recovered, or its successor was made": {prod(3, 3, begun), true},
		"the successor is still to be made":                {prod(2, 3, begun), false},
		"the machine is still going":                       {prod(3, 3, begun, going(0, false)), false},
		"none was begun":                                   {prod(3, 3), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := planRemediation(tc.s, "").settled; got != tc.want {
				t.Errorf("settled: %t, want %t", got, tc.want)
			}
		})
	}
}

func TestRemediatingTellsWhatEachMachineWaitsFor(t *testing.T) {
	s := prod(3, 3, failed(1), podFails("etcd", 1), podFails("etcd", 2))
	for _, v := range makePlan(s).remediation.tell {
		conditions.Set(v.replica.machine, *v.condition)
	}
	setStatus(s, report{})
	c := conditions.Get(s.controlPlane, controlplanev1.KubeadmControlPlaneRemediatingCondition)
	if c.Status != "True" || c.Message != "* Machine cp-2: Nothing is deleted: 2 etcd members would be left, 1 of them healthy; 2 must be" {
		t.Errorf("Remediating is %s: %s", c.Status, c.Message)
	}
}

func TestASilentControlPlaneTellsHowToBringItBack(t *testing.T) {
	tests := map[string]struct {
		s    *snapshot
		want string
	}{
		"three machines":     {prod(3, 3, noLeader), "1. Start the hosts of Machines cp-1, cp-2, cp-3: as soon as 2 of the 3 run"},
		"one":                {prod(1, 1, noLeader), "1. Start the host of Machine cp-1"},
		"none":               {prod(0, 1, func(s *snapshot) { s.controlPlane.Status.Initialization.ControlPlaneInitialized = ptr.To(true) }, noLeader), "1. No machine is left"},
		"silent for a blink": {prod(3, 3, disconnected), ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			setStatus(tc.s, report{})
			message := conditions.Get(tc.s.controlPlane, controlplanev1.KubeadmControlPlaneAvailableCondition).Message
			if !strings.Contains(message, tc.want) || strings.Contains(message, "begin-anew=prod") != (tc.want != "") {
				t.Errorf("told %q, want %q in it", message, tc.want)
			}
		})
	}
}
