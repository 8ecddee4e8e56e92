package cluster

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/workload"
)

var testNow = time.Date(2026, 11, 30, 21, 0, 0, 0, time.UTC)

func deployment(name string, list ...metav1.Condition) clusterv1.MachineDeployment {
	return clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: clusterv1.MachineDeploymentStatus{Conditions: list}}
}

// steady is a snapshot of a Cluster that has everything.
func steady(change func(*snapshot)) *snapshot {
	s := &snapshot{
		now:            testNow,
		cluster:        &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "c", Generation: 1}},
		infrastructure: foreign("FooCluster", "c", initialized("provisioned")),
		controlPlane:   foreign("FooControlPlane", "cp", initialized("controlPlaneInitialized")),
		deployments: []clusterv1.MachineDeployment{deployment("md",
			conditions.True("Available", "Available", ""), conditions.True("MachinesReady", "Ready", ""), conditions.True("MachinesUpToDate", "UpToDate", ""))},
		health: workload.Health{Connected: true, Since: testNow, LastSuccess: testNow},
	}
	if change != nil {
		change(s)
	}
	copyInfrastructure(s)
	copyControlPlane(s)
	return s
}

// told is a condition as a user reads it.
type told struct{ Status, Reason, Message string }

func TestConditionsNameTheObjectTheCauseAndTheNextStep(t *testing.T) {
	for name, tc := range map[string]struct {
		change        func(*snapshot)
		conditionType string
		want          told
	}{
		"all is well": {nil, clusterv1.ClusterAvailableCondition, told{"True", "Available", ""}},
		"the infrastructure object is missing": {
			func(s *snapshot) { s.infrastructure.obj, s.infrastructure.missing = nil, errors.New("not found") },
			clusterv1.ClusterInfrastructureReadyCondition,
			told{"False", "ObjectDoesNotExist", `FooCluster "c" does not exist (not found): create it or correct spec.infrastructureRef`},
		},
		"the control plane is missing": {
			func(s *snapshot) { s.controlPlane.obj, s.controlPlane.missing = nil, errors.New("not found") },
			clusterv1.ClusterControlPlaneAvailableCondition,
			told{"False", "ObjectDoesNotExist", `FooControlPlane "cp" does not exist (not found): create it or correct spec.controlPlaneRef`},
		},
		"a control plane that is another Cluster's": {
			func(s *snapshot) {
				s.controlPlane.obj, s.controlPlane.foreign = nil, errors.New("it is another's: refer to an object of your own")
			},
			clusterv1.ClusterControlPlaneInitializedCondition,
			told{"False", "NotInitialized", "it is another's: refer to an object of your own"},
		},
		"a control plane that cannot be read": {
			func(s *snapshot) { s.controlPlane.obj, s.controlPlane.failed = nil, errors.New("no permission") },
			clusterv1.ClusterControlPlaneInitializedCondition,
			told{"Unknown", "NotInitialized", "no permission"},
		},
		"a Cluster that brings its own infrastructure": {
			func(s *snapshot) { s.infrastructure = external{} },
			clusterv1.ClusterInfrastructureReadyCondition,
			told{"True", "Ready", ""},
		},
		"the control plane is on its way": {
			func(s *snapshot) { s.controlPlane.obj.Object["status"] = map[string]any{} },
			clusterv1.ClusterControlPlaneInitializedCondition,
			told{"False", "NotInitialized", `Waiting for FooControlPlane "cp" to initialize the control plane`},
		},
		"the control plane's own words": {
			func(s *snapshot) {
				_ = unstructured.SetNestedSlice(s.controlPlane.obj.Object, []any{map[string]any{
					"type": "Available", "status": "False", "reason": "NotAvailable", "message": "etcd has no quorum",
				}}, "status", "conditions")
			},
			clusterv1.ClusterAvailableCondition,
			told{"False", "NotAvailable", "* ControlPlaneAvailable: etcd has no quorum"},
		},
		"a deployment that lacks machines": {
			func(s *snapshot) {
				s.deployments = append(s.deployments, deployment("bad", conditions.False("Available", "NotAvailable", "1 of 3 available")))
			},
			clusterv1.ClusterWorkersAvailableCondition,
			told{"False", "NotAvailable", "* MachineDeployment bad: 1 of 3 available"},
		},
		"no workers": {
			func(s *snapshot) { s.deployments = nil },
			clusterv1.ClusterWorkersAvailableCondition,
			told{"True", "NoWorkers", ""},
		},
		"a stand-alone Machine that is not ready": {
			func(s *snapshot) {
				s.workers = []clusterv1.Machine{{ObjectMeta: metav1.ObjectMeta{Name: "m"}, Status: clusterv1.MachineStatus{
					Conditions: []metav1.Condition{conditions.False("Ready", "NotReady", "* NodeHealthy: no\n* X: y")},
				}}}
			},
			clusterv1.ClusterWorkerMachinesReadyCondition,
			told{"False", "NotReady", "* Machine m:\n  * NodeHealthy: no\n  * X: y"},
		},
		"a rollout": {
			func(s *snapshot) {
				s.deployments = []clusterv1.MachineDeployment{deployment("md", conditions.True("RollingOut", "RollingOut", "Rolling out 3 not up-to-date replicas"))}
			},
			clusterv1.ClusterRollingOutCondition,
			told{"True", "RollingOut", "* MachineDeployment md: Rolling out 3 not up-to-date replicas"},
		},
		"no rollout": {nil, clusterv1.ClusterRollingOutCondition, told{"False", "NotRollingOut", ""}},
		"an API server that was lost": {
			func(s *snapshot) {
				s.health = workload.Health{Since: testNow, LastSuccess: testNow.Add(-time.Minute), Err: errors.New("connection refused")}
			},
			clusterv1.ClusterRemoteConnectionProbeCondition,
			told{"False", "ProbeFailed", "Last successful probe at 2026-11-30T20:59:00Z (connection refused)"},
		},
		"an endpoint that nothing answers at yet": {
			func(s *snapshot) {
				s.health = workload.Health{}
				s.cluster.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "10.0.0.1", Port: 6443}
			},
			clusterv1.ClusterRemoteConnectionProbeCondition,
			told{"False", "ProbeFailed", "Remote connection not established yet: the infrastructure is not provisioned"},
		},
		"no endpoint": {
			func(s *snapshot) { s.health = workload.Health{} },
			clusterv1.ClusterRemoteConnectionProbeCondition,
			told{"False", "ProbeFailed", "Remote connection not established yet: the control plane has no endpoint"},
		},
		"an API server that never answered": {
			func(s *snapshot) { s.health = workload.Health{Since: testNow, Err: errors.New("connection refused")} },
			clusterv1.ClusterRemoteConnectionProbeCondition,
			told{"False", "ProbeFailed", "Remote connection not established yet (connection refused)"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := steady(tc.change)
			report(s)
			c := conditions.Get(s.cluster, tc.conditionType)
			if c == nil {
				t.Fatalf("no condition %s", tc.conditionType)
			}
			if d := cmp.Diff(tc.want, told{string(c.Status), c.Reason, c.Message}); d != "" {
				t.Errorf("%s (-want +got):\n%s", tc.conditionType, d)
			}
		})
	}
}

func TestTheProbeDoesNotFlapWhenTheOperatorStarts(t *testing.T) {
	s := steady(nil)
	report(s)
	restarted := steady(func(r *snapshot) {
		r.cluster = s.cluster
		r.now = testNow.Add(2 * time.Second)
		r.health = workload.Health{Since: testNow}
	})
	if again := report(restarted); again != 8*time.Second {
		t.Errorf("look again after %s, want the rest of the grace period", again)
	}
	if !conditions.IsTrue(s.cluster, clusterv1.ClusterRemoteConnectionProbeCondition) {
		t.Error("RemoteConnectionProbe was given up at once")
	}
}

func TestAnotherReportChangesNothing(t *testing.T) {
	s := steady(nil)
	report(s)
	before := s.cluster.DeepCopy()
	report(steady(func(r *snapshot) { r.cluster, r.now = s.cluster, testNow.Add(time.Minute) }))
	if d := cmp.Diff(before, s.cluster); d != "" {
		t.Errorf("a converged Cluster changed (-before +after):\n%s", d)
	}
}
