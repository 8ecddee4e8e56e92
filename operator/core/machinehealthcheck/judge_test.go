package machinehealthcheck

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// epoch is when everything in these tests was created; now is half an hour later.
var (
	epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	now   = epoch.Add(30 * time.Minute)
)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

func condition(conditionType string, status metav1.ConditionStatus, since metav1.Time) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: status, Reason: conditionType, LastTransitionTime: since}
}

// makeCheck returns a check of Nodes that are not ready for 5 minutes, with the defaults.
func makeCheck(change ...func(*clusterv1.MachineHealthCheck)) *clusterv1.MachineHealthCheck {
	check := &clusterv1.MachineHealthCheck{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "workers"},
		Spec: clusterv1.MachineHealthCheckSpec{
			ClusterName: "prod",
			Selector:    metav1.LabelSelector{MatchLabels: map[string]string{"pool": "a"}},
			Checks: clusterv1.MachineHealthCheckChecks{UnhealthyNodeConditions: []clusterv1.UnhealthyNodeCondition{
				{Type: corev1.NodeReady, Status: corev1.ConditionFalse, TimeoutSeconds: ptr.To[int32](300)},
				{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, TimeoutSeconds: ptr.To[int32](300)},
			}},
		},
	}
	for _, f := range change {
		f(check)
	}
	setDefaults(check)
	return check
}

func onMachineCondition(conditionType string, status metav1.ConditionStatus, timeout int32) func(*clusterv1.MachineHealthCheck) {
	return func(check *clusterv1.MachineHealthCheck) {
		check.Spec.Checks.UnhealthyMachineConditions = append(check.Spec.Checks.UnhealthyMachineConditions,
			clusterv1.UnhealthyMachineCondition{Type: conditionType, Status: status, TimeoutSeconds: &timeout})
	}
}

func startupTimeout(seconds int32) func(*clusterv1.MachineHealthCheck) {
	return func(check *clusterv1.MachineHealthCheck) { check.Spec.Checks.NodeStartupTimeoutSeconds = &seconds }
}

// makeCluster returns a Cluster that works since the epoch.
func makeCluster(change ...metav1.Condition) *clusterv1.Cluster {
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "prod"}}
	have := map[string]metav1.Condition{}
	for _, c := range append([]metav1.Condition{
		condition(clusterv1.ClusterInfrastructureReadyCondition, metav1.ConditionTrue, metav1.NewTime(epoch)),
		condition(clusterv1.ClusterControlPlaneInitializedCondition, metav1.ConditionTrue, metav1.NewTime(epoch)),
	}, change...) {
		have[c.Type] = c
	}
	for _, c := range have {
		cluster.Status.Conditions = append(cluster.Status.Conditions, c)
	}
	return cluster
}

// makeMachine returns a Machine that has had a Node of its own name since the epoch.
func makeMachine(name string, change ...func(*clusterv1.Machine)) *clusterv1.Machine {
	machine := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, CreationTimestamp: metav1.NewTime(epoch),
			Labels: map[string]string{clusterv1.ClusterNameLabel: "prod", "pool": "a"},
		},
		Spec: clusterv1.MachineSpec{ClusterName: "prod"},
		Status: clusterv1.MachineStatus{
			Phase:      string(clusterv1.MachinePhaseRunning),
			NodeRef:    clusterv1.MachineNodeReference{Name: name},
			Conditions: []metav1.Condition{condition(clusterv1.MachineInfrastructureReadyCondition, metav1.ConditionTrue, metav1.NewTime(epoch))},
		},
	}
	for _, f := range change {
		f(machine)
	}
	return machine
}

func has(c metav1.Condition) func(*clusterv1.Machine) {
	return func(m *clusterv1.Machine) {
		m.Status.Conditions = append([]metav1.Condition{c}, m.Status.Conditions...)
	}
}

func annotated(key string) func(*clusterv1.Machine) {
	return func(m *clusterv1.Machine) { m.Annotations = map[string]string{key: ""} }
}

func withoutNode(m *clusterv1.Machine) {
	m.Status.NodeRef, m.Status.Phase = clusterv1.MachineNodeReference{}, string(clusterv1.MachinePhaseProvisioned)
}

func controlPlane(m *clusterv1.Machine) { m.Labels[clusterv1.MachineControlPlaneLabel] = "" }

func makeNode(name string, ready corev1.ConditionStatus, since metav1.Time) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: ready, LastTransitionTime: since},
		}},
	}
}

// judgement is what the tests compare: message must contain each part of words.
type judgement struct {
	health health
	reason string
	words  []string
	next   time.Duration
}

func TestAMachineIsJudgedByWhatIsKnown(t *testing.T) {
	ready := makeNode("m", corev1.ConditionTrue, ago(time.Minute))
	succeeded := condition(clusterv1.MachineHealthCheckSucceededCondition, metav1.ConditionTrue, ago(time.Hour))
	unseen := condition(clusterv1.MachineNodeReadyCondition, metav1.ConditionUnknown, ago(20*time.Minute))
	unseen.Reason = clusterv1.MachineNodeConnectionDownReason
	uninitialized := condition(clusterv1.ClusterControlPlaneInitializedCondition, metav1.ConditionFalse, ago(time.Hour))

	cases := map[string]struct {
		check   *clusterv1.MachineHealthCheck
		cluster *clusterv1.Cluster
		machine *clusterv1.Machine
		node    *corev1.Node
		// connected is how long ago the workload cluster was connected to, an hour if unset; negative: it is not.
		connected time.Duration
		want      judgement
	}{
		"a ready Node": {node: ready, want: judgement{health: healthy}},
		"a Node that is not ready for less than the timeout": {
			node: makeNode("m", corev1.ConditionFalse, ago(4*time.Minute)),
			want: judgement{health: undecided, next: time.Minute},
		},
		"a Node that is not ready for as long as the timeout": {
			node: makeNode("m", corev1.ConditionFalse, ago(5*time.Minute)),
			want: judgement{health: failed, reason: "UnhealthyNode", words: []string{"Condition Ready of Node m is False", "2026-01-01T00:25:00Z", "5m0s"}},
		},
		"a silent Node": {
			node: makeNode("m", corev1.ConditionUnknown, ago(time.Hour)),
			want: judgement{health: failed, reason: "UnhealthyNode", words: []string{"Ready of Node m is Unknown"}},
		},
		"a Node that was deleted":    {want: judgement{health: failed, reason: "NodeDeleted", words: []string{"Node m has been deleted"}}},
		"a Node that cannot be seen": {connected: -1, want: judgement{health: undecided}},
		"a Node that cannot be seen and was well": {
			machine: makeMachine("m", has(succeeded)), connected: -1, want: judgement{health: healthy},
		},

		"an annotation asks, whatever the cluster does": {
			machine: makeMachine("m", annotated(clusterv1.RemediateMachineAnnotation)), node: ready, cluster: makeCluster(uninitialized), connected: -1,
			want: judgement{health: failed, reason: "HasRemediateAnnotation", words: []string{clusterv1.RemediateMachineAnnotation}},
		},
		"a Machine whose provider gave it up": {
			machine: makeMachine("m", withoutNode, func(m *clusterv1.Machine) { m.Status.Phase = "Failed" }), connected: -1,
			want: judgement{health: failed, reason: "UnhealthyMachine", words: []string{"Failed"}},
		},
		"a Machine that failed and is being deleted is not judged again": {
			machine: makeMachine("m", annotated(clusterv1.RemediateMachineAnnotation), func(m *clusterv1.Machine) { m.DeletionTimestamp = ptr.To(ago(0)) }),
			want:    judgement{health: undecided},
		},

		"a condition of the Machine for longer than its timeout": {
			check:   makeCheck(onMachineCondition("EtcdPodHealthy", metav1.ConditionFalse, 60)),
			machine: makeMachine("m", has(condition("EtcdPodHealthy", metav1.ConditionFalse, ago(2*time.Minute)))), node: ready,
			want: judgement{health: failed, reason: "UnhealthyMachine", words: []string{"Condition EtcdPodHealthy is False since 2026-01-01T00:28:00Z, for longer than 1m0s"}},
		},
		"a condition of the Machine for less than its timeout, and one of the Node that comes sooner": {
			check:   makeCheck(onMachineCondition("EtcdPodHealthy", metav1.ConditionFalse, 600)),
			machine: makeMachine("m", has(condition("EtcdPodHealthy", metav1.ConditionFalse, ago(2*time.Minute)))),
			node:    makeNode("m", corev1.ConditionFalse, ago(time.Minute)),
			want:    judgement{health: undecided, next: 4 * time.Minute},
		},
		"conditions of both": {
			check:   makeCheck(onMachineCondition("EtcdPodHealthy", metav1.ConditionFalse, 60)),
			machine: makeMachine("m", has(condition("EtcdPodHealthy", metav1.ConditionFalse, ago(2*time.Minute)))),
			node:    makeNode("m", corev1.ConditionFalse, ago(time.Hour)),
			want:    judgement{health: failed, reason: "UnhealthyMachine", words: []string{"Node m is False", "EtcdPodHealthy is False"}},
		},
		"a timeout of zero": {
			check:   makeCheck(onMachineCondition("EtcdPodHealthy", metav1.ConditionFalse, 0)),
			machine: makeMachine("m", has(condition("EtcdPodHealthy", metav1.ConditionFalse, ago(0)))), node: ready,
			want: judgement{health: failed, reason: "UnhealthyMachine", words: []string{"EtcdPodHealthy"}},
		},
		"a condition of the Machine is known without its cluster": {
			check:   makeCheck(onMachineCondition("EtcdPodHealthy", metav1.ConditionFalse, 60)),
			machine: makeMachine("m", has(condition("EtcdPodHealthy", metav1.ConditionFalse, ago(2*time.Minute)))), connected: -1,
			want: judgement{health: failed, reason: "UnhealthyMachine", words: []string{"EtcdPodHealthy"}},
		},
		"a condition that mirrors a Node nobody sees is no knowledge": {
			check:   makeCheck(onMachineCondition(clusterv1.MachineNodeReadyCondition, metav1.ConditionFalse, 60)),
			machine: makeMachine("m", has(condition(clusterv1.MachineNodeReadyCondition, metav1.ConditionFalse, ago(time.Hour)))), connected: -1,
			want: judgement{health: undecided},
		},
		"nor is it the moment that the cluster answers again": {
			check:   makeCheck(onMachineCondition(clusterv1.MachineNodeReadyCondition, metav1.ConditionUnknown, 60)),
			machine: makeMachine("m", has(unseen)), node: ready, connected: time.Second,
			want: judgement{health: healthy},
		},

		"no Node yet": {
			machine: makeMachine("m", withoutNode, func(m *clusterv1.Machine) { m.CreationTimestamp = ago(3 * time.Minute) }),
			want:    judgement{health: undecided, next: 7 * time.Minute},
		},
		"no Node for longer than the start may take": {
			machine: makeMachine("m", withoutNode),
			want:    judgement{health: failed, reason: "NodeStartupTimeout", words: []string{"No Node has appeared since 2026-01-01T00:00:00Z", "10m0s"}},
		},
		"the start counts from when the machine is there": {
			machine: makeMachine("m", withoutNode, func(m *clusterv1.Machine) { m.Status.Conditions[0].LastTransitionTime = ago(4 * time.Minute) }),
			want:    judgement{health: undecided, next: 6 * time.Minute},
		},
		"the start counts from when the control plane is there": {
			machine: makeMachine("m", withoutNode),
			cluster: makeCluster(condition(clusterv1.ClusterControlPlaneInitializedCondition, metav1.ConditionTrue, ago(2*time.Minute))),
			want:    judgement{health: undecided, next: 8 * time.Minute},
		},
		"a machine that never gets there does not start either": {
			machine: makeMachine("m", withoutNode, func(m *clusterv1.Machine) {
				m.Status.Conditions[0] = condition(clusterv1.MachineInfrastructureReadyCondition, metav1.ConditionFalse, ago(time.Minute))
			}),
			want: judgement{health: failed, reason: "NodeStartupTimeout", words: []string{"2026-01-01T00:00:00Z"}},
		},
		"a start that may take for ever": {
			check: makeCheck(startupTimeout(0)), machine: makeMachine("m", withoutNode), want: judgement{health: undecided},
		},
		"whether there is a Node cannot be seen": {
			machine: makeMachine("m", withoutNode), connected: -1, want: judgement{health: undecided},
		},
		"a Node gets a moment to be found after the cluster was out of sight": {
			machine: makeMachine("m", withoutNode), connected: 10 * time.Second, want: judgement{health: undecided, next: 20 * time.Second},
		},

		"no worker is to blame before the control plane is initialized": {
			machine: makeMachine("m", withoutNode), cluster: makeCluster(uninitialized), connected: -1, want: judgement{health: undecided},
		},
		"the machine that should have initialized it is": {
			machine: makeMachine("m", withoutNode, controlPlane), cluster: makeCluster(uninitialized), connected: -1,
			want: judgement{health: failed, reason: "NodeStartupTimeout", words: []string{"No Node"}},
		},
		"nobody is while the cluster's infrastructure is not ready": {
			node:    makeNode("m", corev1.ConditionFalse, ago(time.Hour)),
			cluster: makeCluster(condition(clusterv1.ClusterInfrastructureReadyCondition, metav1.ConditionFalse, ago(time.Hour))),
			want:    judgement{health: undecided},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := snapshot{now: now, check: tc.check, cluster: tc.cluster, connectedSince: now.Add(-tc.connected)}
			switch {
			case tc.connected == 0:
				s.connectedSince = now.Add(-time.Hour)
			case tc.connected < 0:
				s.connectedSince = time.Time{}
			}
			if s.check == nil {
				s.check = makeCheck()
			}
			if s.cluster == nil {
				s.cluster = makeCluster()
			}
			if tc.machine == nil {
				tc.machine = makeMachine("m")
			}
			got := judge(s, target{machine: tc.machine, node: tc.node})
			if got.health != tc.want.health || got.reason != tc.want.reason {
				t.Errorf("judged %s %s, want %s %s", got.health, got.reason, tc.want.health, tc.want.reason)
			}
			for _, words := range tc.want.words {
				if !strings.Contains(got.message, words) {
					t.Errorf("message %q does not say %q", got.message, words)
				}
			}
			var next time.Duration
			if !got.next.IsZero() {
				next = got.next.Sub(now)
			}
			if next != tc.want.next {
				t.Errorf("next look in %s, want %s", next, tc.want.next)
			}
		})
	}
}
