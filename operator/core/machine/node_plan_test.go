package machine

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestOnlyLabelsOfManagedDomainsGoToTheNode(t *testing.T) {
	for key, want := range map[string]bool{
		"node-role.kubernetes.io/worker":              true,
		"node-role.kubernetes.io":                     true,
		"sub.node-role.kubernetes.io/worker":          false,
		"node-restriction.kubernetes.io/zone":         true,
		"team.node-restriction.kubernetes.io/zone":    true,
		"node.cluster.x-k8s.io/pool":                  true,
		"a.node.cluster.x-k8s.io/pool":                true,
		"notnode.cluster.x-k8s.io/pool":               false,
		"cluster.x-k8s.io/cluster-name":               false,
		"topology.kubernetes.io/zone":                 false,
		"plain":                                       false,
		"evil.com/node-restriction.kubernetes.io.foo": false,
	} {
		if got := isManagedLabel(key); got != want {
			t.Errorf("%s: %v, want %v", key, got, want)
		}
	}
}

func TestTheNodeIsWhatTheMachineWants(t *testing.T) {
	back := map[string]string{
		clusterv1.ClusterNameAnnotation: "c", clusterv1.ClusterNamespaceAnnotation: "ns", clusterv1.MachineAnnotation: "m",
		clusterv1.LabelsFromMachineAnnotation: "", clusterv1.AnnotationsFromMachineAnnotation: "", clusterv1.TaintsFromMachineAnnotation: "",
	}
	with := func(extra map[string]string) map[string]string {
		out := map[string]string{}
		for _, m := range []map[string]string{back, extra} {
			for k, v := range m {
				out[k] = v
			}
		}
		return out
	}
	uninitialized := clusterv1.NodeUninitializedTaint
	notReady := corev1.Taint{Key: "node.kubernetes.io/not-ready", Effect: corev1.TaintEffectNoSchedule}
	gpu := corev1.Taint{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule}
	always := clusterv1.MachineTaint{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule, Propagation: clusterv1.MachineTaintPropagationAlways}
	once := always
	once.Propagation = clusterv1.MachineTaintPropagationOnInitialization

	for name, tc := range map[string]struct {
		labels, annotations map[string]string
		taints              []clusterv1.MachineTaint
		node, want          corev1.Node
	}{
		"a new Node": {
			labels:      map[string]string{"node-role.kubernetes.io/worker": "", "other": "x"},
			annotations: map[string]string{"node.cluster.x-k8s.io/note": "hi", "other": "x"},
			taints:      []clusterv1.MachineTaint{always},
			node:        corev1.Node{Spec: corev1.NodeSpec{Taints: []corev1.Taint{notReady, uninitialized}}},
			want: corev1.Node{
				ObjectMeta: metav1.ObjectMeta{
					Labels: map[string]string{"node-role.kubernetes.io/worker": ""},
					Annotations: with(map[string]string{
						"node.cluster.x-k8s.io/note":               "hi",
						clusterv1.LabelsFromMachineAnnotation:      "node-role.kubernetes.io/worker",
						clusterv1.AnnotationsFromMachineAnnotation: "node.cluster.x-k8s.io/note",
						clusterv1.TaintsFromMachineAnnotation:      "gpu:NoSchedule",
					}),
				},
				Spec: corev1.NodeSpec{Taints: []corev1.Taint{notReady, gpu}},
			},
		},
		"what the Machine no longer has goes, what others set stays": {
			node: corev1.Node{
				ObjectMeta: metav1.ObjectMeta{
					Labels: map[string]string{"node-role.kubernetes.io/worker": "", "theirs": ""},
					Annotations: with(map[string]string{
						"theirs": "", clusterv1.LabelsFromMachineAnnotation: "node-role.kubernetes.io/worker",
						clusterv1.TaintsFromMachineAnnotation: "gpu:NoSchedule",
					}),
				},
				Spec: corev1.NodeSpec{Taints: []corev1.Taint{gpu, notReady}},
			},
			want: corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"theirs": ""}, Annotations: with(map[string]string{"theirs": ""})},
				Spec:       corev1.NodeSpec{Taints: []corev1.Taint{notReady}},
			},
		},
		"a taint for the start is set on a new Node": {
			taints: []clusterv1.MachineTaint{once},
			want:   corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: back}, Spec: corev1.NodeSpec{Taints: []corev1.Taint{gpu}}},
		},
		"a taint for the start stays away once it was removed": {
			taints: []clusterv1.MachineTaint{once},
			node:   corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: back}},
			want:   corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: back}},
		},
		"a taint with another value is corrected": {
			taints: []clusterv1.MachineTaint{always},
			node:   corev1.Node{Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "gpu", Value: "no", Effect: corev1.TaintEffectNoSchedule}}}},
			want: corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Annotations: with(map[string]string{clusterv1.TaintsFromMachineAnnotation: "gpu:NoSchedule"})},
				Spec:       corev1.NodeSpec{Taints: []corev1.Taint{gpu}},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", Labels: tc.labels, Annotations: tc.annotations}}
			m.Spec.ClusterName, m.Spec.Taints = "c", tc.taints
			got := wantedNode(m, &tc.node)
			if d := cmp.Diff(&tc.want, got, cmpopts.EquateEmpty()); d != "" {
				t.Errorf("node (-want +got):\n%s", d)
			}
			if d := cmp.Diff(got, wantedNode(m, got), cmpopts.EquateEmpty()); d != "" {
				t.Errorf("a second sync changes it again:\n%s", d)
			}
		})
	}
}
