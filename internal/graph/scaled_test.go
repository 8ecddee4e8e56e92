package graph

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// settled makes the fixture's deployment one of six machines that all run.
func settled(obj client.Object) bool {
	switch obj := obj.(type) {
	case *clusterv1.Cluster:
		obj.Status.Conditions = obj.Status.Conditions[:2]
	case *clusterv1.MachineDeployment:
		obj.Status.UpToDateReplicas = ptr.To[int32](6)
	case *clusterv1.Machine:
		obj.Status.Phase = string(clusterv1.MachinePhaseRunning)
		// Six workers of the seven.
		return obj.Name != "c1-md-new-1"
	}
	return true
}

func TestScaled(t *testing.T) {
	machine := func(obj client.Object, name string, change func(*clusterv1.Machine)) {
		if m, ok := obj.(*clusterv1.Machine); ok && m.Name == name {
			change(m)
		}
	}
	cases := map[string]struct {
		replicas int32
		change   func(client.Object)
		want     Scale
	}{
		"is done with exactly so many running machines": {
			replicas: 6,
			want:     Scale{Done: true, Ready: 6},
		},
		"waits for machines that are not created, and says what the deployment says": {
			replicas: 8,
			change: func(obj client.Object) {
				if d, ok := obj.(*clusterv1.MachineDeployment); ok {
					d.Status.Conditions = append(d.Status.Conditions, metav1.Condition{Type: clusterv1.ScalingUpCondition, Message: "* MachineSet x: quota exceeded"})
				}
			},
			want: Scale{Ready: 6, Missing: "6 of 8 machines are ready: 2 not created yet (MachineSet x: quota exceeded)"},
		},
		"waits for a machine that does not run, and says why": {
			replicas: 6,
			change: func(obj client.Object) {
				machine(obj, "c1-md-new-0", func(m *clusterv1.Machine) {
					m.Status.Phase = string(clusterv1.MachinePhaseProvisioning)
					m.Status.Conditions = []metav1.Condition{{Type: clusterv1.ReadyCondition, Status: metav1.ConditionFalse, Reason: "NotReady", Message: "* InfrastructureReady: datastore full\n* NodeHealthy: waiting"}}
				})
			},
			want: Scale{Ready: 5, Missing: "5 of 6 machines are ready: machine c1-md-new-0: Provisioning (InfrastructureReady: datastore full)"},
		},
		"waits for a node that is not ready": {
			replicas: 6,
			change: func(obj client.Object) {
				machine(obj, "c1-md-new-0", func(m *clusterv1.Machine) {
					m.Status.Conditions = []metav1.Condition{{Type: clusterv1.MachineNodeReadyCondition, Status: metav1.ConditionFalse, Reason: "NodeNotReady", Message: "cni plugin not initialized"}}
				})
			},
			want: Scale{Ready: 5, Missing: "5 of 6 machines are ready: machine c1-md-new-0: node node-c1-md-new-0 is not ready (NodeNotReady: cni plugin not initialized)"},
		},
		"waits for a machine that is being deleted": {
			replicas: 5,
			change: func(obj client.Object) {
				machine(obj, "c1-md-old-0", func(m *clusterv1.Machine) {
					m.DeletionTimestamp = &metav1.Time{Time: time.Unix(0, 0)}
					m.Status.Conditions = []metav1.Condition{{Type: clusterv1.DeletingCondition, Status: metav1.ConditionTrue, Reason: "DrainingNode", Message: "pod web-0 is left"}}
				})
				if d, ok := obj.(*clusterv1.MachineDeployment); ok {
					d.Status.Replicas = ptr.To[int32](5)
				}
			},
			want: Scale{Ready: 5, Leaving: 1, Missing: "5 of 5 machines are ready: machine c1-md-old-0: being deleted (DrainingNode: pod web-0 is left)"},
		},
		"waits for surplus machines that nobody has begun to delete": {
			replicas: 2,
			want:     Scale{Ready: 6, Missing: "6 of 2 machines are ready: 4 too many"},
		},
		"waits for the controller to see the change": {
			replicas: 6,
			change: func(obj client.Object) {
				if d, ok := obj.(*clusterv1.MachineDeployment); ok {
					d.Generation = 2
				}
			},
			want: Scale{Ready: 6, Missing: "6 of 6 machines are ready: MachineDeployment c1-md does not report 6 replicas yet"},
		},
		"names three machines and counts the rest": {
			replicas: 6,
			change: func(obj client.Object) {
				if m, ok := obj.(*clusterv1.Machine); ok {
					m.Status = clusterv1.MachineStatus{}
				}
			},
			want: Scale{Missing: "0 of 6 machines are ready: machine c1-md-new-0: Pending; machine c1-md-old-0: Pending; machine c1-md-old-1: Pending; 3 more"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g := rolling(t, func(obj client.Object) bool {
				keep := settled(obj)
				if tc.change != nil {
					tc.change(obj)
				}
				return keep
			})
			owner := g.Find(clusterv1.GroupVersion.WithKind("MachineDeployment").GroupKind(), "c1-md")
			if diff := cmp.Diff(tc.want, g.Scaled(owner, tc.replicas)); diff != "" {
				t.Errorf("scale (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnready(t *testing.T) {
	deployment := func(change func(*clusterv1.MachineDeployment)) func(client.Object) {
		return func(obj client.Object) {
			if d, ok := obj.(*clusterv1.MachineDeployment); ok {
				change(d)
			}
		}
	}
	cases := map[string]struct {
		change func(client.Object)
		want   string
	}{
		"is empty when all is there": {},
		"repeats what the cluster says": {
			change: func(obj client.Object) {
				if c, ok := obj.(*clusterv1.Cluster); ok {
					c.Status.Conditions = []metav1.Condition{{Type: clusterv1.AvailableCondition, Status: metav1.ConditionFalse, Reason: "NotAvailable", Message: "* ControlPlaneAvailable: not initialized"}}
				}
			},
			want: "Cluster c1 is not ready (ControlPlaneAvailable: not initialized)",
		},
		"counts machines that are not ready": {
			change: deployment(func(d *clusterv1.MachineDeployment) { d.Status.ReadyReplicas = ptr.To[int32](4) }),
			want:   "MachineDeployment c1-md has 4 of 6 machines ready",
		},
		"counts machines that are too many": {
			change: deployment(func(d *clusterv1.MachineDeployment) { d.Status.Replicas = ptr.To[int32](7) }),
			want:   "MachineDeployment c1-md has 7 machines, 1 too many",
		},
		"counts machines that are not up to date": {
			change: deployment(func(d *clusterv1.MachineDeployment) { d.Status.UpToDateReplicas = ptr.To[int32](1) }),
			want:   "MachineDeployment c1-md has 1 of 6 machines up to date",
		},
		"does not trust a status older than the spec": {
			change: deployment(func(d *clusterv1.MachineDeployment) { d.Generation = 9 }),
			want:   "MachineDeployment c1-md has changed and its controller has not looked at it yet",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g := rolling(t, func(obj client.Object) bool {
				keep := settled(obj)
				if tc.change != nil {
					tc.change(obj)
				}
				return keep
			})
			if got := g.Unready(); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestChangesTellWhatCameWentAndChanged(t *testing.T) {
	before := rolling(t, nil).Tree(TreeOptions{All: true}).Snapshot()
	after := rolling(t, func(obj client.Object) bool {
		m, ok := obj.(*clusterv1.Machine)
		if ok && m.Name == "c1-md-new-1" {
			m.Status.Phase = string(clusterv1.MachinePhaseRunning)
			m.Status.Conditions = []metav1.Condition{{Type: clusterv1.ReadyCondition, Status: metav1.ConditionTrue}}
		}
		return !ok || m.Name != "c1-md-old-0"
	}).Tree(TreeOptions{All: true}).Snapshot()

	want := []string{"Machine/c1-md-new-1: Running, Ready", "Machine/c1-md-old-0: gone"}
	if diff := cmp.Diff(want, after.Changes(before)); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if got := after.Changes(after); got != nil {
		t.Errorf("no change gave %q", got)
	}

	want = []string{
		"AcmeCluster/c1: Ready",
		"Cluster/c1: Provisioned, Ready",
		"KubeadmControlPlane/c1: 1 of 1 ready",
		"Machine/c1-md-new-1: Provisioning (InfrastructureReady: cloning)",
		"MachineDeployment/c1-md: 6 of 6 ready, RollingOut",
		"MachineHealthCheck/c1-mhc: Ready",
	}
	if diff := cmp.Diff(want, before.Changes(nil)); diff != "" {
		t.Errorf("first lines (-want +got):\n%s", diff)
	}
}

func TestFirstLineIsAStatement(t *testing.T) {
	cases := map[string]struct{ message, want string }{
		"nothing":                            {"", ""},
		"one line":                           {"no address yet", "no address yet"},
		"the first of a list":                {"* InfrastructureReady: cloning\n* NodeHealthy: waiting", "InfrastructureReady: cloning"},
		"a title goes with what is below it": {"* BootstrapConfigReady:\n  * DataSecretAvailable: waiting\n* NodeHealthy: waiting", "BootstrapConfigReady: DataSecretAvailable: waiting"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := FirstLine(tc.message); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
