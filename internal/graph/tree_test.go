package graph

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestTreeOfACluster(t *testing.T) {
	cases := map[string]struct {
		change func(client.Object) bool
		opts   TreeOptions
		want   string
	}{
		"in a rollout shows both sets, groups equal machines and opens the one that is not ready": {
			want: `
Cluster/c1 [RollingOut]
  Infrastructure AcmeCluster/c1
  ControlPlane KubeadmControlPlane/c1
    Machine/c1-a
  Workers
    MachineDeployment/c1-md [RollingOut]
      MachineSet/c1-md-new Unknown(ReadyUnknown)
        Machine/c1-md-new-0
        Machine/c1-md-new-1 False(NotReady)
          Infrastructure AcmeMachine/c1-md-new-1 False(Cloning)
      MachineSet/c1-md-old
        Machine c1-md-old-0,c1-md-old-1,c1-md-old-2,c1-md-old-3,c1-md-old-4
`,
		},
		"with all objects shows empty sets, objects behind ready machines and health checks": {
			opts: TreeOptions{All: true},
			want: `
Cluster/c1 [RollingOut]
  Infrastructure AcmeCluster/c1
  ControlPlane KubeadmControlPlane/c1
    Machine/c1-a
      Infrastructure AcmeMachine/c1-a
  Workers
    MachineDeployment/c1-md [RollingOut]
      MachineSet/c1-md-ancient
      MachineSet/c1-md-new Unknown(ReadyUnknown)
        Machine/c1-md-new-0
        Machine/c1-md-new-1 False(NotReady)
          Infrastructure AcmeMachine/c1-md-new-1 False(Cloning)
      MachineSet/c1-md-old
        Machine/c1-md-old-0
        Machine/c1-md-old-1
        Machine/c1-md-old-2
        Machine/c1-md-old-3
        Machine/c1-md-old-4
  MachineHealthCheck/c1-mhc
`,
		},
		"with one set leaves the set out": {
			change: func(obj client.Object) bool {
				machine, ok := obj.(*clusterv1.Machine)
				return !ok || machine.Labels[clusterv1.MachineSetNameLabel] != "c1-md-old"
			},
			want: `
Cluster/c1 [RollingOut]
  Infrastructure AcmeCluster/c1
  ControlPlane KubeadmControlPlane/c1
    Machine/c1-a
  Workers
    MachineDeployment/c1-md [RollingOut]
      Machine/c1-md-new-0
      Machine/c1-md-new-1 False(NotReady)
        Infrastructure AcmeMachine/c1-md-new-1 False(Cloning)
`,
		},
		"without its control plane object keeps the control-plane machines in sight": {
			change: func(obj client.Object) bool {
				if _, worker := obj.GetLabels()[clusterv1.MachineSetNameLabel]; worker {
					return false
				}
				switch obj.GetObjectKind().GroupVersionKind().Kind {
				case "KubeadmControlPlane", "MachineDeployment", "MachineSet":
					return false
				}
				return true
			},
			want: `
Cluster/c1 [RollingOut]
  Infrastructure AcmeCluster/c1
  ControlPlane
    Machine/c1-a
`,
		},
		"that nobody has looked at says so": {
			change: func(obj client.Object) bool {
				cluster, ok := obj.(*clusterv1.Cluster)
				if ok {
					cluster.Status = clusterv1.ClusterStatus{}
				}
				return ok
			},
			want: `
Cluster/c1 Unknown(NotReported)
`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := outline(rolling(t, tc.change).Tree(tc.opts))
			if diff := cmp.Diff(strings.TrimPrefix(tc.want, "\n"), got); diff != "" {
				t.Errorf("tree (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBuildWithoutTheClusterIsNotFound(t *testing.T) {
	_, err := Build(testScheme(), client.ObjectKey{Namespace: "default", Name: "other"}, fixture(t, "testdata/rolling.yaml"))
	if !apierrors.IsNotFound(err) {
		t.Errorf("got error %v, want a NotFound", err)
	}
}

func TestStateOfAnObject(t *testing.T) {
	deleted := metav1.NewTime(time.Date(2026, 1, 1, 11, 0, 0, 0, time.UTC))
	cases := map[string]struct {
		change func(*clusterv1.Machine)
		want   State
	}{
		"being deleted is told by the deletion": {
			change: func(m *clusterv1.Machine) {
				m.DeletionTimestamp = &deleted
				m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{
					Type: clusterv1.DeletingCondition, Status: metav1.ConditionTrue, Reason: "DrainingNode", Message: "pod web-0 is left",
				})
			},
			want: State{Ready: metav1.ConditionFalse, Reason: "DrainingNode", Message: "pod web-0 is left", Since: deleted.Time, Deleting: true},
		},
		"paused by annotation is paused": {
			change: func(m *clusterv1.Machine) {
				m.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
				m.Status.Conditions = m.Status.Conditions[:1]
			},
			want: State{
				Ready: metav1.ConditionTrue, Reason: "Ready", Paused: true,
				Since: time.Date(2026, 1, 1, 9, 58, 0, 0, time.UTC),
			},
		},
		"without conditions is unknown": {
			change: func(m *clusterv1.Machine) { m.Status = clusterv1.MachineStatus{} },
			want:   State{Ready: metav1.ConditionUnknown, Reason: NotReported, Message: "no controller has reported on it yet"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g := rolling(t, func(obj client.Object) bool {
				if m, ok := obj.(*clusterv1.Machine); ok && m.Name == "c1-a" {
					tc.change(m)
				}
				return true
			})
			got := g.Find(clusterv1.GroupVersion.WithKind("Machine").GroupKind(), "c1-a").State()
			got.Since = got.Since.UTC()
			want := tc.want
			want.Since = want.Since.UTC()
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("state (-want +got):\n%s", diff)
			}
		})
	}
}

func TestConditionsOfTheOldContractAreReadWhereTheNewOnesAreKept(t *testing.T) {
	g := rolling(t, func(obj client.Object) bool {
		u, ok := obj.(interface{ UnstructuredContent() map[string]any })
		if ok && obj.GetName() == "c1-md-new-1" {
			u.UnstructuredContent()["status"] = map[string]any{
				"conditions": []any{map[string]any{"type": "Ready", "status": "False", "severity": "Warning", "reason": "Old"}},
				"v1beta2": map[string]any{"conditions": []any{
					map[string]any{"type": "Ready", "status": "True", "reason": "New", "lastTransitionTime": "2026-01-01T10:00:00Z"},
				}},
			}
		}
		return true
	})
	machine := g.Find(clusterv1.GroupVersion.WithKind("Machine").GroupKind(), "c1-md-new-1")
	got := g.Lookup(machine.Object.(*clusterv1.Machine).Spec.InfrastructureRef).State()
	if got.Ready != metav1.ConditionTrue || got.Reason != "New" {
		t.Errorf("got %s (%s), want True (New)", got.Ready, got.Reason)
	}
}

func TestGroupKeepsFewMachinesApart(t *testing.T) {
	machines := func(n int) []*Node {
		var nodes []*Node
		for i := range n {
			nodes = append(nodes, &Node{Kind: "Machine", Name: string(rune('a' + i)), Ready: metav1.ConditionTrue, Since: ptr.To(time.Unix(int64(i), 0))})
		}
		return nodes
	}
	if got := len(group(machines(groupFrom - 1))); got != groupFrom-1 {
		t.Errorf("%d machines became %d nodes", groupFrom-1, got)
	}
	grouped := group(machines(groupFrom))
	if len(grouped) != 1 || len(grouped[0].Names) != groupFrom {
		t.Fatalf("%d machines became %+v, want one group", groupFrom, grouped)
	}
	if want := time.Unix(groupFrom-1, 0); !grouped[0].Since.Equal(want) {
		t.Errorf("group is since %s, want the time of the last, %s", grouped[0].Since, want)
	}
}
