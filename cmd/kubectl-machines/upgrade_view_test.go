package main

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	lifecyclev1 "github.com/millwright-dev/millwright/api/lifecycle/v1alpha1"
)

// runningUpgrade is one over two minors that replaces its workers.
func runningUpgrade() (*lifecyclev1.ClusterUpgrade, time.Time) {
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(-d)} }
	u := &lifecyclev1.ClusterUpgrade{Spec: lifecyclev1.ClusterUpgradeSpec{ClusterName: "prod", Version: "v1.37.2"}}
	u.Status.Phase, u.Status.Message, u.Status.Since = lifecyclev1.UpgradeRunning, `workers "md-0" to v1.37.2: 1 of 3 machines are up to date`, ago(40*time.Second)
	u.Status.Steps = []lifecyclev1.Step{
		{Leg: 1, Kind: "control-plane", From: "v1.35.4", To: "v1.36.3", Machines: 3, Done: 3, State: lifecyclev1.StepDone, StartTime: ago(6 * time.Minute), CompletionTime: ago(4 * time.Minute)},
		{Leg: 1, Kind: "addon", Name: "kube-proxy", From: "1.35.0", To: "1.36.0", State: lifecyclev1.StepDone, StartTime: ago(4 * time.Minute), CompletionTime: ago(4*time.Minute - 9*time.Second)},
		{Leg: 2, Kind: "control-plane", From: "v1.36.3", To: "v1.37.2", Machines: 3, Done: 3, State: lifecyclev1.StepDone, StartTime: ago(3 * time.Minute), CompletionTime: ago(time.Minute)},
		{Leg: 2, Kind: "workers", Name: "md-0", From: "v1.35.4", To: "v1.37.2", Machines: 3, Done: 1, State: lifecyclev1.StepRunning, StartTime: ago(40 * time.Second)},
		{Leg: 2, Kind: "workers", Name: "md-1", From: "v1.35.4", To: "v1.37.2", Machines: 2, State: lifecyclev1.StepPending},
	}
	return u, now
}
