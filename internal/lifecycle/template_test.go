package lifecycle_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/lifecycle"
)

func template(change ...func(*clusterv1.MachineTemplateSpec)) clusterv1.MachineTemplateSpec {
	out := clusterv1.MachineTemplateSpec{
		ObjectMeta: clusterv1.ObjectMeta{Labels: map[string]string{"team": "a"}},
		Spec: clusterv1.MachineSpec{
			ClusterName: "prod",
			Version:     "v1.37.2",
			Bootstrap: clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{
				APIGroup: "bootstrap.cluster.x-k8s.io", Kind: "KubeadmConfigTemplate", Name: "workers",
			}},
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{
				APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "VSphereMachineTemplate", Name: "small",
			},
		},
	}
	for _, f := range change {
		f(&out)
	}
	return out
}

func TestTemplateDifferencesAndHashAgreeOnWhatNeedsANewMachine(t *testing.T) {
	cases := map[string]struct {
		want clusterv1.MachineTemplateSpec
		diff []string
	}{
		"same": {want: template()},
		"version without v": {
			want: template(func(m *clusterv1.MachineTemplateSpec) { m.Spec.Version = "1.37.2" }),
		},
		"what changes in place": {
			want: template(func(m *clusterv1.MachineTemplateSpec) {
				m.Labels = map[string]string{"team": "b"}
				m.Annotations = map[string]string{"note": "x"}
				m.Spec.MinReadySeconds = ptr.To[int32](10)
				m.Spec.Deletion.NodeDrainTimeoutSeconds = ptr.To[int32](60)
				m.Spec.ReadinessGates = []clusterv1.MachineReadinessGate{{ConditionType: "Ours"}}
				m.Spec.Taints = []clusterv1.MachineTaint{{Key: "gpu", Effect: "NoSchedule"}}
			}),
		},
		"version": {
			want: template(func(m *clusterv1.MachineTemplateSpec) { m.Spec.Version = "v1.36.3" }),
			diff: []string{"Version v1.37.2, v1.36.3 required"},
		},
		"failure domain": {
			want: template(func(m *clusterv1.MachineTemplateSpec) { m.Spec.FailureDomain = "zone-b" }),
			diff: []string{"Failure domain none, zone-b required"},
		},
		"both templates": {
			want: template(func(m *clusterv1.MachineTemplateSpec) {
				m.Spec.Bootstrap.ConfigRef.Name = "workers-2"
				m.Spec.InfrastructureRef.Name = "large"
			}),
			diff: []string{
				"Bootstrap template KubeadmConfigTemplate.bootstrap.cluster.x-k8s.io/workers, KubeadmConfigTemplate.bootstrap.cluster.x-k8s.io/workers-2 required",
				"Infrastructure template VSphereMachineTemplate.infrastructure.cluster.x-k8s.io/small, VSphereMachineTemplate.infrastructure.cluster.x-k8s.io/large required",
			},
		},
		"a fixed bootstrap secret": {
			want: template(func(m *clusterv1.MachineTemplateSpec) {
				m.Spec.Bootstrap = clusterv1.Bootstrap{DataSecretName: ptr.To("userdata")}
			}),
			diff: []string{
				"Bootstrap template KubeadmConfigTemplate.bootstrap.cluster.x-k8s.io/workers, none required",
				"Bootstrap data secret none, userdata required",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := lifecycle.TemplateDifferences(template(), tc.want)
			if diff := cmp.Diff(tc.diff, got); diff != "" {
				t.Errorf("differences (-want +got):\n%s", diff)
			}
			same := lifecycle.TemplateHash(template()) == lifecycle.TemplateHash(tc.want)
			if same != (len(tc.diff) == 0) {
				t.Errorf("hashes equal is %v with differences %q", same, tc.diff)
			}
		})
	}
}
