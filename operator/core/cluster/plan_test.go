package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/lifecycle"
)

func foreign(kind, name string, content map[string]any) external {
	obj := &unstructured.Unstructured{Object: content}
	if content == nil {
		obj.Object = map[string]any{}
	}
	obj.SetKind(kind)
	obj.SetName(name)
	return external{ref: clusterv1.ContractVersionedObjectReference{APIGroup: "foo.test", Kind: kind, Name: name}, obj: obj}
}

func initialized(field string) map[string]any {
	return map[string]any{"status": map[string]any{"initialization": map[string]any{field: true}}}
}

func TestTheEndpointComesFromTheInfrastructureElseFromTheControlPlane(t *testing.T) {
	endpoint := func(host string) map[string]any {
		return map[string]any{"spec": map[string]any{"controlPlaneEndpoint": map[string]any{"host": host, "port": int64(6443)}}}
	}
	for name, tc := range map[string]struct {
		given                        clusterv1.APIEndpoint
		infrastructure, controlPlane map[string]any
		want                         string
	}{
		"the infrastructure's":   {infrastructure: endpoint("infra"), controlPlane: endpoint("cp"), want: "infra"},
		"the control plane's":    {controlPlane: endpoint("cp"), want: "cp"},
		"the user's stays":       {given: clusterv1.APIEndpoint{Host: "user", Port: 1}, infrastructure: endpoint("infra"), want: "user"},
		"nobody knows it so far": {},
	} {
		t.Run(name, func(t *testing.T) {
			s := &snapshot{cluster: &clusterv1.Cluster{}, infrastructure: foreign("FooCluster", "c", tc.infrastructure), controlPlane: foreign("FooControlPlane", "cp", tc.controlPlane)}
			s.cluster.Spec.ControlPlaneEndpoint = tc.given
			copyInfrastructure(s)
			copyControlPlane(s)
			if got := s.cluster.Spec.ControlPlaneEndpoint.Host; got != tc.want {
				t.Errorf("host %q, want %q", got, tc.want)
			}
		})
	}
}

func TestInitializedGoesBackOnlyWhereAPersonGaveEtcdUp(t *testing.T) {
	says := func(value bool, annotations ...any) map[string]any {
		out := map[string]any{"status": map[string]any{"initialization": map[string]any{"controlPlaneInitialized": value}}}
		for _, name := range annotations {
			out["metadata"] = map[string]any{"annotations": map[string]any{name.(string): "x"}}
		}
		return out
	}
	for name, tc := range map[string]struct {
		controlPlane map[string]any
		want         bool
	}{
		"it is initialized":                {says(true), true},
		"it says nothing":                  {nil, true},
		"another kind says that it is not": {says(false), true},
		"a person has given etcd up":       {says(false, lifecycle.BeginAnewAnnotation), false},
		"and it has begun anew":            {says(false, lifecycle.BegunAnewAnnotation), false},
		"that is long ago":                 {says(true, lifecycle.BegunAnewAnnotation), true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &snapshot{cluster: &clusterv1.Cluster{}, controlPlane: foreign("FooControlPlane", "cp", tc.controlPlane)}
			s.cluster.Status.Initialization.ControlPlaneInitialized = new(true)
			copyControlPlane(s)
			if got := isTrue(s.cluster.Status.Initialization.ControlPlaneInitialized); got != tc.want {
				t.Errorf("initialized: %t, want %t", got, tc.want)
			}
		})
	}
}

func TestPhaseFollowsWhatIsThere(t *testing.T) {
	now := metav1.Now()
	for name, tc := range map[string]struct {
		change func(*snapshot)
		want   clusterv1.ClusterPhase
	}{
		"nothing":             {func(*snapshot) {}, clusterv1.ClusterPhasePending},
		"references":          {func(s *snapshot) { s.infrastructure = foreign("FooCluster", "c", nil) }, clusterv1.ClusterPhaseProvisioning},
		"no endpoint so far":  {func(s *snapshot) { s.infrastructure = foreign("FooCluster", "c", initialized("provisioned")) }, clusterv1.ClusterPhaseProvisioning},
		"an endpoint as well": {func(s *snapshot) { s.cluster.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "h", Port: 1} }, clusterv1.ClusterPhaseProvisioned},
		"being deleted":       {func(s *snapshot) { s.cluster.DeletionTimestamp = &now }, clusterv1.ClusterPhaseDeleting},
		"beyond repair": {func(s *snapshot) {
			s.infrastructure = foreign("FooCluster", "c", map[string]any{"status": map[string]any{"failureMessage": "no"}})
			//lint:ignore SA1019 See phase.
		}, clusterv1.ClusterPhaseFailed},
	} {
		t.Run(name, func(t *testing.T) {
			s := &snapshot{cluster: &clusterv1.Cluster{}}
			tc.change(s)
			copyInfrastructure(s)
			if got := phase(s); got != tc.want {
				t.Errorf("phase %s, want %s", got, tc.want)
			}
		})
	}
}

func TestWorkersAreCountedOnce(t *testing.T) {
	s := &snapshot{
		deployments: []clusterv1.MachineDeployment{{
			Spec: clusterv1.MachineDeploymentSpec{Replicas: new(int32(3))},
			Status: clusterv1.MachineDeploymentStatus{
				Replicas: new(int32(4)), UpToDateReplicas: new(int32(2)), ReadyReplicas: new(int32(3)), AvailableReplicas: new(int32(1)),
				Versions: []clusterv1.StatusVersion{{Version: "v1.36.3", Replicas: 2}, {Version: "v1.37.2", Replicas: 2}},
			},
		}},
		sets: []clusterv1.MachineSet{{
			Spec:   clusterv1.MachineSetSpec{Replicas: new(int32(1))},
			Status: clusterv1.MachineSetStatus{Replicas: new(int32(1)), Versions: []clusterv1.StatusVersion{{Version: "v1.37.2", Replicas: 1}}},
		}},
		workers: []clusterv1.Machine{{
			Spec:   clusterv1.MachineSpec{Version: "v1.35.4"},
			Status: clusterv1.MachineStatus{Conditions: []metav1.Condition{conditions.True("Ready", "Ready", ""), conditions.False("Available", "NotReady", "")}},
		}},
	}
	want := counters{
		desired: 5, replicas: 6, upToDate: 3, ready: 4, available: 1,
		versions: []clusterv1.StatusVersion{{Version: "v1.35.4", Replicas: 1}, {Version: "v1.36.3", Replicas: 2}, {Version: "v1.37.2", Replicas: 3}},
	}
	if d := cmp.Diff(want, countWorkers(s), cmp.AllowUnexported(counters{})); d != "" {
		t.Errorf("counters (-want +got):\n%s", d)
	}
}

func TestADeletionGoesStageByStage(t *testing.T) {
	type outcome struct {
		Deletes []string
		Reason  string
		Last    bool
	}
	s := &snapshot{
		cluster:              &clusterv1.Cluster{},
		infrastructure:       foreign("FooCluster", "infra", nil),
		controlPlane:         foreign("FooControlPlane", "cp", nil),
		deployments:          []clusterv1.MachineDeployment{{ObjectMeta: metav1.ObjectMeta{Name: "md"}}},
		sets:                 []clusterv1.MachineSet{{ObjectMeta: metav1.ObjectMeta{Name: "ms"}}},
		workers:              []clusterv1.Machine{{ObjectMeta: metav1.ObjectMeta{Name: "w"}}},
		controlPlaneMachines: []clusterv1.Machine{{ObjectMeta: metav1.ObjectMeta{Name: "m"}}},
		managedSets:          1,
		managedWorkers:       2,
	}
	for _, step := range []struct {
		want outcome
		gone func()
	}{
		{outcome{Deletes: []string{"md"}, Reason: "WaitingForWorkersDeletion"}, func() { s.deployments = nil }},
		{outcome{Deletes: []string{"ms"}, Reason: "WaitingForWorkersDeletion"}, func() { s.sets = nil }},
		{outcome{Deletes: []string{"w"}, Reason: "WaitingForWorkersDeletion"}, func() { s.workers = nil }},
		{outcome{Reason: "WaitingForWorkersDeletion"}, func() { s.managedSets = 0 }},
		{outcome{Reason: "WaitingForWorkersDeletion"}, func() { s.managedWorkers = 0 }},
		{outcome{Deletes: []string{"cp"}, Reason: "WaitingForControlPlaneDeletion"}, func() { s.controlPlane.obj = nil }},
		{outcome{Deletes: []string{"m"}, Reason: "WaitingForControlPlaneDeletion"}, func() { s.controlPlaneMachines = nil }},
		{outcome{Deletes: []string{"infra"}, Reason: "WaitingForInfrastructureDeletion"}, func() { s.infrastructure.obj = nil }},
		{outcome{Reason: "DeletionCompleted", Last: true}, func() {}},
	} {
		got := nextStage(s)
		have := outcome{Reason: got.reason, Last: got.last}
		for _, obj := range got.delete {
			have.Deletes = append(have.Deletes, obj.GetName())
		}
		if d := cmp.Diff(step.want, have); d != "" {
			t.Errorf("stage (-want +got):\n%s", d)
		}
		step.gone()
	}
}
