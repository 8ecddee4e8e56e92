package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// rotating returns a control plane of three, and as many machines as there are ages, in seconds before certsNow.
func rotating(after *time.Time, ages ...int) (*controlplanev1.KubeadmControlPlane, []*clusterv1.Machine) {
	plane := &controlplanev1.KubeadmControlPlane{ObjectMeta: metav1.ObjectMeta{Name: "prod"}}
	plane.Spec.Replicas = ptr.To(int32(3))
	if after != nil {
		plane.Spec.Rollout.After = metav1.NewTime(*after)
	}
	var machines []*clusterv1.Machine
	for i, age := range ages {
		m := certMachine(string(rune('a' + i)))
		m.CreationTimestamp = metav1.NewTime(certsNow.Add(-time.Duration(age) * time.Second))
		m.Status.Conditions = []metav1.Condition{{Type: clusterv1.MachineReadyCondition, Status: metav1.ConditionTrue}}
		machines = append(machines, &m)
	}
	return plane, machines
}

func TestARotationIsAskedForOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		after *time.Time
		ages  []int
		// wantAfter is in seconds after certsNow.
		wantAfter int
		wantPatch string
		wantErr   string
	}{
		"machines of long ago":            {ages: []int{1000, 1000, 1000}, wantAfter: 1, wantPatch: `{"spec":{"rollout":{"after":"2026-06-01T12:00:01Z"}}}`},
		"a machine of a clock ahead":      {ages: []int{1000, -5}, wantAfter: 6, wantPatch: `{"spec":{"rollout":{"after":"2026-06-01T12:00:06Z"}}}`},
		"one under way":                   {after: ptr.To(certsNow.Add(-100 * time.Second)), ages: []int{1000, 50, 20}, wantAfter: -100},
		"one that is over":                {after: ptr.To(certsNow.Add(-100 * time.Second)), ages: []int{70, 50, 20}, wantAfter: 1, wantPatch: `{"spec":{"rollout":{"after":"2026-06-01T12:00:01Z"}}}`},
		"one that is planned for tonight": {after: ptr.To(certsNow.Add(time.Hour)), ages: []int{1000}, wantAfter: 1, wantPatch: `{"spec":{"rollout":{"after":"2026-06-01T12:00:01Z"}}}`},
		"no machine":                      {wantErr: "has no machines yet"},
	} {
		t.Run(name, func(t *testing.T) {
			plane, machines := rotating(tc.after, tc.ages...)
			plan, err := planRotation(&clusterv1.Cluster{}, plane, machines, certsNow)
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Fatalf("error %v, want %q", err, tc.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			patch := ""
			if plan.patch != nil {
				data, err := plan.patch.Data(plan.object)
				if err != nil {
					t.Fatal(err)
				}
				patch = string(data)
			}
			if diff := cmp.Diff(tc.wantPatch, patch); diff != "" {
				t.Errorf("patch (-want +got):\n%s", diff)
			}
			if want := certsNow.Add(time.Duration(tc.wantAfter) * time.Second); !plan.after.Equal(want) {
				t.Errorf("after = %s, want %s", plan.after, want)
			}
		})
	}
}

func TestARotationOfWhatIsBeingDeletedIsRefused(t *testing.T) {
	plane, machines := rotating(nil, 1000)
	gone := metav1.NewTime(certsNow)
	if _, err := planRotation(&clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &gone}}, plane, machines, certsNow); err == nil {
		t.Error("the cluster's deletion did not matter")
	}
	plane.DeletionTimestamp = &gone
	if _, err := planRotation(&clusterv1.Cluster{}, plane, machines, certsNow); err == nil {
		t.Error("the control plane's deletion did not matter")
	}
}

func TestARotationIsOverWhenAllMachinesAreNewAndReady(t *testing.T) {
	for name, tc := range map[string]struct {
		ages   []int
		change func(*controlplanev1.KubeadmControlPlane, []*clusterv1.Machine)
		done   bool
		want   string
	}{
		"not begun":          {ages: []int{900, 900, 900}, want: "0 of 3 machines are new and ready, 3 old"},
		"one more than many": {ages: []int{900, 900, 900, 10}, want: "1 of 3 machines are new and ready, 3 old"},
		"all new":            {ages: []int{30, 20, 10}, done: true, want: "all 3 machines are new and ready"},
		"one that starts": {
			ages: []int{30, 20, 10}, want: "2 of 3 machines are new and ready, 0 old",
			change: func(_ *controlplanev1.KubeadmControlPlane, m []*clusterv1.Machine) {
				m[2].Status.Conditions[0].Status = metav1.ConditionUnknown
			},
		},
		"held up by etcd": {
			ages: []int{900, 900, 10}, want: "1 of 3 machines are new and ready, 2 old; etcd member a does not answer",
			change: func(p *controlplanev1.KubeadmControlPlane, _ []*clusterv1.Machine) {
				p.Status.Conditions = []metav1.Condition{{
					Type: controlplanev1.KubeadmControlPlaneEtcdClusterHealthyCondition, Status: metav1.ConditionFalse, Message: "etcd member a does not answer",
				}}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			plane, machines := rotating(nil, tc.ages...)
			if tc.change != nil {
				tc.change(plane, machines)
			}
			got := stateOfRotation(plane, machines, certsNow.Add(-100*time.Second))
			if diff := cmp.Diff("KubeadmControlPlane prod: "+tc.want, got.line); diff != "" || got.done != tc.done {
				t.Errorf("done %v, want %v; line (-want +got):\n%s", got.done, tc.done, diff)
			}
		})
	}
}
