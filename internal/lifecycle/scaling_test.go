package lifecycle_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/lifecycle"
)

func TestScalingUpTellsWhatBlocksAndBlockedReadsIt(t *testing.T) {
	cases := map[string]struct {
		have, want  int
		blocked     []string
		wantStatus  metav1.ConditionStatus
		wantMessage string
	}{
		"nothing to do": {have: 3, want: 3, wantStatus: metav1.ConditionFalse},
		"too many":      {have: 4, want: 3, wantStatus: metav1.ConditionFalse},
		"some missing":  {have: 1, want: 3, wantStatus: metav1.ConditionTrue, wantMessage: "Scaling up from 1 to 3 replicas"},
		"some missing and blocked": {
			have: 1, want: 3, blocked: []string{"no template", "no Cluster"},
			wantStatus: metav1.ConditionTrue, wantMessage: "Scaling up from 1 to 3 replicas is blocked:\n* no template\n* no Cluster",
		},
		"would be blocked": {
			have: 3, want: 3, blocked: []string{"no template"},
			wantStatus: metav1.ConditionFalse, wantMessage: "Scaling up would be blocked:\n* no template",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := lifecycle.ScalingUp(tc.have, tc.want, tc.blocked)
			if got.Status != tc.wantStatus || got.Message != tc.wantMessage {
				t.Errorf("ScalingUp is %s %q, want %s %q", got.Status, got.Message, tc.wantStatus, tc.wantMessage)
			}
			if diff := cmp.Diff(tc.blocked, lifecycle.Blocked(&got)); diff != "" {
				t.Errorf("read back (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRemediatingNamesTheMachinesBeingReplaced(t *testing.T) {
	machine := func(name string, c ...metav1.Condition) *clusterv1.Machine {
		m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name}}
		m.SetConditions(c)
		return m
	}
	failed := conditions.False(clusterv1.MachineHealthCheckSucceededCondition, "NodeStartupTimeout", "")
	ours := conditions.False(clusterv1.MachineOwnerRemediatedCondition, "WaitingForRemediation", "")

	cases := map[string]struct {
		machines []*clusterv1.Machine
		want     metav1.Condition
	}{
		"all well": {
			machines: []*clusterv1.Machine{machine("a")},
			want:     conditions.False("Remediating", "NotRemediating", ""),
		},
		"one being replaced": {
			machines: []*clusterv1.Machine{machine("a"), machine("b", failed, ours)},
			want:     conditions.True("Remediating", "Remediating", "Replacing Machines b"),
		},
		"failed, but remediated by somebody else": {
			machines: []*clusterv1.Machine{machine("a", failed)},
			want:     conditions.False("Remediating", "NotRemediating", "1 Machines failed their health check and are not replaced by this object"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, lifecycle.Remediating(tc.machines)); diff != "" {
				t.Errorf("condition (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCountVersionsIsInOrderOfVersions(t *testing.T) {
	var machines []*clusterv1.Machine
	for _, version := range []string{"v1.10.0", "v1.9.1", "v1.10.0", "", "odd"} {
		machines = append(machines, &clusterv1.Machine{Spec: clusterv1.MachineSpec{Version: version}})
	}
	want := []clusterv1.StatusVersion{{Version: "odd", Replicas: 1}, {Version: "v1.9.1", Replicas: 1}, {Version: "v1.10.0", Replicas: 2}}
	if diff := cmp.Diff(want, lifecycle.CountVersions(machines)); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
}
