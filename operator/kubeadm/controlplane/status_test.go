package controlplane

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/etcd"
	"github.com/millwright-dev/millwright/operator/kubeadm/certificates"
)

// told returns status and reason of the conditions of a control plane that differ from those of a
// healthy one at rest.
func told(s *snapshot, r report) map[string]string {
	rest := map[string]string{
		"Available": "True Available", "CertificatesAvailable": "True Available", "Initialized": "True Initialized",
		"EtcdClusterHealthy": "True Healthy", "ControlPlaneComponentsHealthy": "True Healthy",
		"MachinesReady": "True Ready", "MachinesUpToDate": "True UpToDate", "RollingOut": "False NotRollingOut",
		"ScalingUp": "False NotScalingUp", "ScalingDown": "False NotScalingDown", "Remediating": "False NotRemediating", "Deleting": "False NotDeleting",
	}
	for _, replica := range s.replicas {
		if !replica.deleting() && conditions.Get(replica.machine, clusterv1.MachineReadyCondition) == nil {
			conditions.Set(replica.machine, conditions.True(clusterv1.MachineReadyCondition, clusterv1.MachineReadyReason, ""))
		}
	}
	setStatus(s, r)
	out := map[string]string{}
	for _, c := range s.controlPlane.Status.Conditions {
		if got := string(c.Status) + " " + c.Reason; got != rest[c.Type] {
			out[c.Type] = got
		}
		delete(rest, c.Type)
	}
	for missing := range rest {
		out[missing] = "missing"
	}
	return out
}

func TestControlPlaneTellsItsState(t *testing.T) {
	tests := map[string]struct {
		s    *snapshot
		r    report
		want map[string]string
	}{
		"at rest": {prod(3, 3), report{}, map[string]string{}},
		"before the infrastructure is there": {prod(0, 3), report{waiting: "Waiting for infrastructure"}, map[string]string{
			"Available": "False NotAvailable", "CertificatesAvailable": "Unknown InternalError", "Initialized": "False NotInitialized",
			"EtcdClusterHealthy": "Unknown InspectionFailed", "ControlPlaneComponentsHealthy": "Unknown InspectionFailed",
			"MachinesReady": "True NoReplicas", "MachinesUpToDate": "True NoReplicas", "ScalingUp": "True ScalingUp",
		}},
		"while the first machine starts": {prod(1, 3, uninitialized), report{}, map[string]string{
			"Available": "False NotAvailable", "Initialized": "False NotInitialized",
			"EtcdClusterHealthy": "Unknown ConnectionDown", "ControlPlaneComponentsHealthy": "Unknown ConnectionDown", "ScalingUp": "True ScalingUp",
		}},
		"when one component fails": {prod(3, 3, podFails("kube-scheduler", 2)), report{}, map[string]string{"ControlPlaneComponentsHealthy": "False NotHealthy"}},
		"when etcd has no leader": {prod(3, 3, func(s *snapshot) {
			s.workload.etcd, s.workload.etcdErr = nil, fmt.Errorf("status: %w", etcd.ErrNoLeader)
		}), report{}, map[string]string{
			"Available": "False NotAvailable", "EtcdClusterHealthy": "Unknown HealthUnknown",
		}},
		"while a member has been added but does not run": {prod(2, 3, podFails("etcd", 1)), report{}, map[string]string{
			"ControlPlaneComponentsHealthy": "False NotHealthy", "ScalingUp": "True ScalingUp",
		}},
		"when no machine is whole": {prod(3, 3, podFails("etcd", 0), podFails("kube-apiserver", 1), podFails("kube-scheduler", 2)), report{}, map[string]string{
			"Available": "False NotAvailable", "ControlPlaneComponentsHealthy": "False NotHealthy",
		}},
		"when a member is left over":            {prod(3, 3, stranger(9, "cp-9")), report{}, map[string]string{"EtcdClusterHealthy": "False NotHealthy"}},
		"when etcd does not answer":             {prod(3, 3, func(s *snapshot) { s.workload.etcd = nil }), report{}, map[string]string{"Available": "Unknown InspectionFailed", "EtcdClusterHealthy": "Unknown HealthUnknown"}},
		"when the only one is kept for another": {prod(1, 1, going(0, true)), report{}, map[string]string{"MachinesReady": "Unknown ReadyUnknown"}},
		"when one is let go":                    {prod(4, 3, going(0, true), letGo(0)), report{}, map[string]string{"MachinesReady": "Unknown ReadyUnknown", "ScalingDown": "True ScalingDown"}},
		"when it scales down":                   {prod(3, 1), report{}, map[string]string{"ScalingDown": "True ScalingDown"}},
		"when the version is changed":           {prod(3, 3, func(s *snapshot) { s.controlPlane.Spec.Version = "v1.38.0" }), report{}, map[string]string{"MachinesUpToDate": "False NotUpToDate", "RollingOut": "True RollingOut"}},
		"when certificates were lost":           {prod(3, 3), report{waiting: "w", certificates: &certificates.MissingError{}}, map[string]string{"Available": "False NotAvailable", "CertificatesAvailable": "False NotAvailable", "EtcdClusterHealthy": "Unknown InspectionFailed", "ControlPlaneComponentsHealthy": "Unknown InspectionFailed"}},
		"when the cluster is silent": {prod(3, 3, disconnected), report{}, map[string]string{
			"Available": "Unknown InspectionFailed", "EtcdClusterHealthy": "Unknown ConnectionDown", "ControlPlaneComponentsHealthy": "Unknown ConnectionDown",
		}},
		"when it is deleted": {prod(1, 1, func(s *snapshot) { s.controlPlane.DeletionTimestamp = &metav1.Time{Time: noon} }), report{deletingReason: "WaitingForMachineDeletion"}, map[string]string{
			"Available": "False NotAvailable", "Deleting": "True WaitingForMachineDeletion", "ScalingDown": "True ScalingDown",
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, told(tc.s, tc.r)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestBlockedScalingSaysWhy(t *testing.T) {
	s := prod(2, 3, machineLacksNode(1))
	setStatus(s, report{blocked: makePlan(s).blocked})
	message := conditions.Get(s.controlPlane, controlplanev1.KubeadmControlPlaneScalingUpCondition).Message
	if want := "Scaling up from 2 to 3 replicas waits:\n* Machine cp-2 has no Node yet"; message != want {
		t.Errorf("message %q, want %q", message, want)
	}
}

func TestCountersAndSelectorServeTheScaleSubresource(t *testing.T) {
	s := prod(3, 3, func(s *snapshot) { s.replicas[0].machine.Spec.Version = "v1.36.3" })
	told(s, report{})
	status := s.controlPlane.Status
	got := []int32{*status.Replicas, *status.ReadyReplicas, *status.AvailableReplicas, *status.UpToDateReplicas}
	if diff := cmp.Diff([]int32{3, 3, 0, 2}, got); diff != "" {
		t.Errorf("counters (-want +got):\n%s", diff)
	}
	if want := []clusterv1.StatusVersion{{Version: "v1.36.3", Replicas: 1}, {Version: "v1.37.2", Replicas: 2}}; !cmp.Equal(want, status.Versions) {
		t.Errorf("versions %v, want %v", status.Versions, want)
	}
	if !strings.Contains(status.Selector, "cluster.x-k8s.io/control-plane-name=prod") {
		t.Errorf("selector %q", status.Selector)
	}
}

func TestMachinesAreComparedWithWhatIsAskedFor(t *testing.T) {
	change := func(f func(*controlplanev1.KubeadmControlPlaneSpec)) func(*snapshot) {
		return func(s *snapshot) { f(&s.controlPlane.Spec) }
	}
	cloned := func(name, kind string) func(*snapshot) {
		return func(s *snapshot) {
			for _, r := range s.replicas {
				r.infrastructure.SetAnnotations(map[string]string{clusterv1.TemplateClonedFromNameAnnotation: name, clusterv1.TemplateClonedFromGroupKindAnnotation: kind})
			}
		}
	}
	const kind = "VSphereMachineTemplate.infrastructure.cluster.x-k8s.io"
	tests := map[string]struct {
		s    *snapshot
		want string
	}{
		"nothing has changed":           {prod(2, 3, cloned("prod", kind)), ""},
		"another version":               {prod(2, 3, change(func(spec *controlplanev1.KubeadmControlPlaneSpec) { spec.Version = "v1.38.0" })), "Version v1.37.2, v1.38.0 required"},
		"another template":              {prod(2, 3, cloned("old", kind)), "/old, VSphereMachineTemplate.infrastructure.cluster.x-k8s.io/prod required"},
		"a machine that was not cloned": {prod(2, 3), ""},
		"another configuration": {prod(2, 3, change(func(spec *controlplanev1.KubeadmControlPlaneSpec) {
			spec.KubeadmConfigSpec.PreKubeadmCommands = []string{"true"}
		})), "KubeadmConfig differs"},
		"what is filled in for each one": {prod(2, 3, func(s *snapshot) {
			s.replicas[0].config.Spec.ClusterConfiguration.ControlPlaneEndpoint = "127.10.0.1:6443"
			s.replicas[1].config.Spec.JoinConfiguration.Discovery.BootstrapToken.Token = "abcdef.0123456789abcdef"
		}), ""},
		"the DNS add-on, which is changed in place": {prod(2, 3, change(func(spec *controlplanev1.KubeadmControlPlaneSpec) {
			spec.KubeadmConfigSpec.ClusterConfiguration.DNS = bootstrapv1.DNS{ImageTag: "v1.14.0"}
		})), ""},
		"the config is missing": {prod(2, 3, func(s *snapshot) { s.replicas[0].config, s.replicas[1].config = nil, nil }), ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for _, r := range tc.s.replicas {
				got := strings.Join(differences(tc.s, r), "\n")
				if (tc.want == "") != (got == "") || !strings.Contains(got, tc.want) {
					t.Errorf("Machine %s: %q, want %q", r.machine.Name, got, tc.want)
				}
			}
		})
	}
}

func TestKubeletLocalModeIsAskedForWhereKubeadmKnowsIt(t *testing.T) {
	chosen := bootstrapv1.KubeadmConfigSpec{ClusterConfiguration: bootstrapv1.ClusterConfiguration{FeatureGates: map[string]bool{kubeletLocalMode: false}}}
	tests := map[string]struct {
		in      bootstrapv1.KubeadmConfigSpec
		version string
		want    *bool
	}{
		"before there was one":      {bootstrapv1.KubeadmConfigSpec{}, "v1.30.9", nil},
		"while it is optional":      {bootstrapv1.KubeadmConfigSpec{}, "v1.35.4", ptr.To(true)},
		"the user's choice stays":   {chosen, "v1.35.4", ptr.To(false)},
		"since it is always on":     {bootstrapv1.KubeadmConfigSpec{}, "v1.36.3", nil},
		"a release candidate of it": {bootstrapv1.KubeadmConfigSpec{}, "v1.36.0-rc.0", nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got *bool
			if value, ok := kubeadmConfigSpec(tc.in, tc.version, false).ClusterConfiguration.FeatureGates[kubeletLocalMode]; ok {
				got = &value
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatWasKnownStaysToldWhileANewOperatorConnects(t *testing.T) {
	s := prod(3, 3)
	setStatus(s, report{})
	before := s.controlPlane.DeepCopy().Status.Conditions
	s.workload = inspection{settling: time.Second}
	setStatus(s, report{})
	if d := cmp.Diff(before, s.controlPlane.Status.Conditions); d != "" {
		t.Errorf("the conditions changed while the operator connects (-before +after):\n%s", d)
	}
	if again := lookAgain(s); again != time.Second {
		t.Errorf("look again after %s, want the rest of the time to connect", again)
	}

	s.workload.settling = 0
	setStatus(s, report{})
	if c := conditions.Get(s.controlPlane, "Available"); c.Status != "Unknown" {
		t.Errorf("Available is %s when the API server has not answered for long, want Unknown", c.Status)
	}
}
