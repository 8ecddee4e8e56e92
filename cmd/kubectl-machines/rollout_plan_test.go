package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/lifecycle"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// rolledOut returns a deployment of three machines whose rollout is over, and its set.
func rolledOut(change ...func(*clusterv1.MachineDeployment)) (*clusterv1.MachineDeployment, []*clusterv1.MachineSet) {
	deployment := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{
		Name: "workers", UID: "workers", Generation: 2, Annotations: map[string]string{clusterv1.RevisionAnnotation: "4"},
	}}
	deployment.Spec.Replicas = ptr.To[int32](3)
	deployment.Status = clusterv1.MachineDeploymentStatus{
		ObservedGeneration: 2, Replicas: ptr.To[int32](3), UpToDateReplicas: ptr.To[int32](3), AvailableReplicas: ptr.To[int32](3),
	}
	set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{
		Name: "workers-x", Annotations: map[string]string{clusterv1.RevisionAnnotation: "4"}, CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour)),
	}}
	for _, f := range change {
		f(deployment)
	}
	return deployment, []*clusterv1.MachineSet{set}
}

func rolling(d *clusterv1.MachineDeployment) {
	d.Status.Replicas, d.Status.UpToDateReplicas = ptr.To[int32](4), ptr.To[int32](1)
	conditions.Set(d, conditions.True(clusterv1.MachineDeploymentRollingOutCondition, "RollingOut", ""))
}

func TestARolloutIsDoneWhenAllMachinesAreOfItsRevision(t *testing.T) {
	cases := map[string]struct {
		change    func(*clusterv1.MachineDeployment)
		wantDone  bool
		wantLine  string
		wantStuck bool
	}{
		"over": {
			change: func(*clusterv1.MachineDeployment) {}, wantDone: true, wantLine: "rolled out: 3 machines up to date and available, revision 4",
		},
		"a change that the controller has not seen": {
			change: func(d *clusterv1.MachineDeployment) { d.Generation = 3 }, wantLine: "waiting for the controller to see the last change",
		},
		"a restart whose set is not there yet": {
			change: func(d *clusterv1.MachineDeployment) { d.Spec.Rollout.After = metav1.NewTime(noon) }, wantLine: "waiting for the controller to see the last change",
		},
		"a restart that is due tomorrow": {
			change: func(d *clusterv1.MachineDeployment) { d.Spec.Rollout.After = metav1.NewTime(noon.Add(24 * time.Hour)) }, wantDone: true, wantLine: "rolled out",
		},
		"under way": {change: rolling, wantLine: "1 of 3 machines up to date, 3 available, 4 in all"},
		"blocked": {
			change: func(d *clusterv1.MachineDeployment) {
				rolling(d)
				conditions.Set(d, lifecycle.ScalingUp(2, 3, []string{"no template", "no Cluster"}))
			},
			wantLine: "4 in all; blocked: no template",
		},
		"paused": {
			change:   func(d *clusterv1.MachineDeployment) { rolling(d); d.Spec.Paused = ptr.To(true) },
			wantLine: "1 of 3", wantStuck: true,
		},
		"paused with nothing to do": {
			change: func(d *clusterv1.MachineDeployment) { d.Spec.Paused = ptr.To(true) }, wantDone: true, wantLine: "rolled out",
		},
		"some not available": {
			change: func(d *clusterv1.MachineDeployment) { d.Status.AvailableReplicas = ptr.To[int32](2) }, wantLine: "3 of 3 machines up to date, 2 available, 3 in all",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			deployment, sets := rolledOut(tc.change)
			got := stateOfRollout(deployment, sets, noon.Add(time.Second))
			if got.done != tc.wantDone || !strings.Contains(got.line, tc.wantLine) || (got.stuck != "") != tc.wantStuck {
				t.Errorf("state is %+v, want done %v, %q, stuck %v", got, tc.wantDone, tc.wantLine, tc.wantStuck)
			}
		})
	}
}

func TestARestartReplacesEveryMachineThereIs(t *testing.T) {
	target := target{kind: kindDeployment, name: "workers"}
	inTopology := func(d *clusterv1.MachineDeployment) {
		d.Labels = map[string]string{clusterv1.ClusterTopologyOwnedLabel: "", clusterv1.ClusterTopologyMachineDeploymentNameLabel: "pool"}
	}
	topology := func(rollout clusterv1.MachineDeploymentTopologyRolloutSpec) *clusterv1.Cluster {
		cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "prod", Generation: 7}}
		cluster.Spec.Topology.Workers.MachineDeployments = []clusterv1.MachineDeploymentTopology{{Name: "other"}, {Name: "pool", Rollout: rollout}}
		return cluster
	}
	cases := map[string]struct {
		change    func(*clusterv1.MachineDeployment)
		cluster   *clusterv1.Cluster
		now       time.Time
		wantPatch string
		wantErr   string
	}{
		"with the next second": {now: noon.Add(300 * time.Millisecond), wantPatch: `{"spec":{"rollout":{"after":"2026-01-01T12:00:01Z"}}}`},
		"by a clock that is behind the server's": {
			now: noon.Add(-2 * time.Hour), wantPatch: `{"spec":{"rollout":{"after":"2026-01-01T11:00:01Z"}}}`,
		},
		"through a topology": {
			change: inTopology, cluster: topology(clusterv1.MachineDeploymentTopologyRolloutSpec{}), now: noon,
			wantPatch: `[{"op":"test","path":"/metadata/generation","value":7},{"op":"add","path":"/spec/topology/workers/machineDeployments/1/rollout","value":{"after":"2026-01-01T12:00:01Z"}}]`,
		},
		"through a topology that has a strategy": {
			change: inTopology, now: noon, cluster: topology(clusterv1.MachineDeploymentTopologyRolloutSpec{After: metav1.NewTime(noon.Add(-time.Hour))}),
			wantPatch: `[{"op":"test","path":"/metadata/generation","value":7},{"op":"add","path":"/spec/topology/workers/machineDeployments/1/rollout/after","value":"2026-01-01T12:00:01Z"}]`,
		},
		"one that the topology does not name": {change: inTopology, cluster: &clusterv1.Cluster{}, now: noon, wantErr: "is not named there"},
		"a paused one":                        {change: func(d *clusterv1.MachineDeployment) { d.Spec.Paused = ptr.To(true) }, now: noon, wantErr: "resume it first"},
		"one that goes":                       {change: func(d *clusterv1.MachineDeployment) { d.DeletionTimestamp = ptr.To(metav1.NewTime(noon)) }, now: noon, wantErr: "is being deleted"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.change == nil {
				tc.change = func(*clusterv1.MachineDeployment) {}
			}
			if tc.cluster == nil {
				tc.cluster = &clusterv1.Cluster{}
			}
			deployment, sets := rolledOut(tc.change)
			got, err := planRestart(target, deployment, tc.cluster, sets, tc.now)
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Errorf("error is %v, want one that says %q", err, tc.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			data, err := got.patch.Data(got.object)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.wantPatch, string(data)); diff != "" {
				t.Errorf("patch (-want +got):\n%s", diff)
			}
		})
	}
}
