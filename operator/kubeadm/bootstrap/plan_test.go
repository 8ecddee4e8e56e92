package bootstrap

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// worker returns a snapshot of a worker whose cluster has everything that joining needs.
func worker(changes ...func(*snapshot)) snapshot {
	s := snapshot{
		config:  &bootstrapv1.KubeadmConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "prod-md-1"}},
		machine: &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "prod-md-1"}, Spec: clusterv1.MachineSpec{ClusterName: "prod", Version: "v1.37.2"}},
		cluster: &clusterv1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "prod", UID: "cluster"},
			Spec:       clusterv1.ClusterSpec{ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: "127.10.0.1", Port: 6443}},
			Status: clusterv1.ClusterStatus{Initialization: clusterv1.ClusterInitializationStatus{
				InfrastructureProvisioned: ptr.To(true), ControlPlaneInitialized: ptr.To(true),
			}},
		},
	}
	for _, change := range changes {
		change(&s)
	}
	return s
}

func asControlPlane(s *snapshot) {
	s.machine.Labels = map[string]string{clusterv1.MachineControlPlaneLabel: ""}
}

func uninitialized(s *snapshot) { s.cluster.Status.Initialization.ControlPlaneInitialized = nil }

func rendered(s *snapshot) {
	s.config.Status.Initialization.DataSecretCreated = ptr.To(true)
	s.config.Status.DataSecretName = s.config.Name
}

func withToken(s *snapshot) {
	s.config.Spec.JoinConfiguration.Discovery.BootstrapToken.Token = "abcdef.0123456789abcdef"
}

func going(s *snapshot) { s.machine.DeletionTimestamp = &metav1.Time{Time: noon} }

func joined(s *snapshot) { s.machine.Status.NodeRef.Name = "prod-md-1" }

func TestNextStepFollowsFromWhatThereIs(t *testing.T) {
	tests := map[string]struct {
		s    snapshot
		want step
	}{
		"infrastructure comes first":                            {worker(func(s *snapshot) { s.cluster.Status.Initialization = clusterv1.ClusterInitializationStatus{} }), waitForInfrastructure},
		"a worker waits until the control plane is initialized": {worker(uninitialized), waitForControlPlane},
		"a first control plane machine initializes":             {worker(uninitialized, asControlPlane), initialize},
		"a worker joins":                        {worker(), joinWorker},
		"a further control plane machine joins": {worker(asControlPlane), joinControlPlane},
		"joining needs an endpoint":             {worker(func(s *snapshot) { s.cluster.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{} }), waitForEndpoint},
		"a user's own endpoint will do": {worker(func(s *snapshot) {
			s.cluster.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{}
			s.config.Spec.JoinConfiguration.Discovery.BootstrapToken.APIServerEndpoint = "10.0.0.1:6443"
		}), joinWorker},
		"a user's own kubeconfig will do": {worker(func(s *snapshot) {
			s.cluster.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{}
			s.config.Spec.JoinConfiguration.Discovery.File.KubeConfigPath = "/etc/discovery.conf"
		}), joinWorker},
		"a token is kept alive until the machine has joined":   {worker(rendered, withToken), refreshToken},
		"a token is left alone afterwards":                     {worker(rendered, withToken, joined), done},
		"a token of a machine that goes is left to expire":     {worker(rendered, withToken, going), done},
		"a machine that goes does not begin":                   {worker(uninitialized, asControlPlane, going), refuse},
		"the initializing machine has no token":                {worker(rendered, asControlPlane), done},
		"rendered stays rendered when the infrastructure goes": {worker(rendered, func(s *snapshot) { s.cluster.Status.Initialization = clusterv1.ClusterInitializationStatus{} }), done},
		"lost status is taken over from the Machine":           {worker(func(s *snapshot) { s.machine.Spec.Bootstrap.DataSecretName = ptr.To("prod-md-1") }), takeOver},
		"a Machine needs a version":                            {worker(func(s *snapshot) { s.machine.Spec.Version = "" }), refuse},
		"a worker cannot bring a control plane":                {worker(func(s *snapshot) { s.config.Spec.JoinConfiguration.ControlPlane = &bootstrapv1.JoinControlPlane{} }), refuse},
		"ignition is no different":                             {worker(func(s *snapshot) { s.config.Spec.Format = bootstrapv1.Ignition }), joinWorker},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := next(tc.s)
			if got.step != tc.want {
				t.Errorf("next = %q, want %q", got.step, tc.want)
			}
			waits := map[step]bool{waitForInfrastructure: true, waitForControlPlane: true, waitForEndpoint: true, refuse: true}
			if waits[got.step] != (got.message != "") {
				t.Errorf("step %q has message %q: waits and refusals, and only they, must tell why", got.step, got.message)
			}
		})
	}
}

func TestWorkersAloneBearTheUninitializedTaint(t *testing.T) {
	own := corev1.Taint{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}
	join := func(taints ...corev1.Taint) bootstrapv1.JoinConfiguration {
		if taints == nil {
			return bootstrapv1.JoinConfiguration{}
		}
		return bootstrapv1.JoinConfiguration{NodeRegistration: bootstrapv1.NodeRegistrationOptions{Taints: &taints}}
	}
	tests := map[string]struct {
		in   bootstrapv1.JoinConfiguration
		as   step
		want bootstrapv1.JoinConfiguration
	}{
		"a worker":                         {join(), joinWorker, join(clusterv1.NodeUninitializedTaint)},
		"a worker with a taint of its own": {join(own), joinWorker, join(own, clusterv1.NodeUninitializedTaint)},
		"a worker that has it already":     {join(clusterv1.NodeUninitializedTaint), joinWorker, join(clusterv1.NodeUninitializedTaint)},
		"a control plane machine":          {join(own), joinControlPlane, join(own)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			before := *tc.in.DeepCopy()
			if diff := cmp.Diff(tc.want, joinDocument(tc.in, tc.as)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, tc.in); diff != "" {
				t.Errorf("the spec itself was changed (-before +after):\n%s", diff)
			}
		})
	}
}

func TestDiscoveryIsCompletedWhereTheUserLeftItOpen(t *testing.T) {
	const pin = "sha256:00"
	ca := testCA(t)
	tests := map[string]struct {
		in, want bootstrapv1.Discovery
	}{
		"all is open": {
			bootstrapv1.Discovery{},
			bootstrapv1.Discovery{BootstrapToken: bootstrapv1.BootstrapTokenDiscovery{APIServerEndpoint: "127.10.0.1:6443", CACertHashes: pinsOf(t, ca)}},
		},
		"the user's choices stay": {
			bootstrapv1.Discovery{BootstrapToken: bootstrapv1.BootstrapTokenDiscovery{Token: "abcdef.0123456789abcdef", APIServerEndpoint: "api:443", CACertHashes: []string{pin}}},
			bootstrapv1.Discovery{BootstrapToken: bootstrapv1.BootstrapTokenDiscovery{Token: "abcdef.0123456789abcdef", APIServerEndpoint: "api:443", CACertHashes: []string{pin}}},
		},
		"skipping the check is not undone": {
			bootstrapv1.Discovery{BootstrapToken: bootstrapv1.BootstrapTokenDiscovery{UnsafeSkipCAVerification: ptr.To(true)}},
			bootstrapv1.Discovery{BootstrapToken: bootstrapv1.BootstrapTokenDiscovery{APIServerEndpoint: "127.10.0.1:6443", UnsafeSkipCAVerification: ptr.To(true)}},
		},
		"a kubeconfig of the image is left alone": {
			bootstrapv1.Discovery{File: bootstrapv1.FileDiscovery{KubeConfigPath: "/x"}},
			bootstrapv1.Discovery{File: bootstrapv1.FileDiscovery{KubeConfigPath: "/x"}},
		},
		"a kubeconfig to be written gets server and authority": {
			bootstrapv1.Discovery{File: bootstrapv1.FileDiscovery{KubeConfigPath: "/x", KubeConfig: bootstrapv1.FileDiscoveryKubeConfig{User: execUser()}}},
			bootstrapv1.Discovery{File: bootstrapv1.FileDiscovery{KubeConfigPath: "/x", KubeConfig: bootstrapv1.FileDiscoveryKubeConfig{
				User: execUser(), Cluster: bootstrapv1.KubeConfigCluster{Server: "https://127.10.0.1:6443", CertificateAuthorityData: ca},
			}}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			join := bootstrapv1.JoinConfiguration{Discovery: tc.in}
			if err := completeDiscovery(&join, worker().cluster, ca); err != nil {
				t.Fatal(err)
			}
			ignored := cmp.Options{}
			if tc.in.BootstrapToken.Token == "" && !tc.in.File.IsDefined() {
				ignored = append(ignored, cmpopts.IgnoreFields(bootstrapv1.BootstrapTokenDiscovery{}, "Token"))
				if join.Discovery.BootstrapToken.Token == "" {
					t.Error("no token was chosen")
				}
			}
			if diff := cmp.Diff(tc.want, join.Discovery, ignored); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func execUser() bootstrapv1.KubeConfigUser {
	return bootstrapv1.KubeConfigUser{Exec: bootstrapv1.KubeConfigAuthExec{Command: "token"}}
}

func TestDiscoveryKubeconfigIsOneThatKubeadmCanLoad(t *testing.T) {
	file, err := discoveryFile(bootstrapv1.FileDiscovery{KubeConfigPath: "/x", KubeConfig: bootstrapv1.FileDiscoveryKubeConfig{
		User: execUser(), Cluster: bootstrapv1.KubeConfigCluster{Server: "https://127.10.0.1:6443", CertificateAuthorityData: testCA(t)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	config := loadKubeconfig(t, file.Content)
	if config.Host != "https://127.10.0.1:6443" || config.ExecProvider == nil || config.ExecProvider.Command != "token" {
		t.Errorf("got %+v", config)
	}
	if file, err := discoveryFile(bootstrapv1.FileDiscovery{KubeConfigPath: "/x"}); file != nil || err != nil {
		t.Errorf("a kubeconfig of the image gives file %v, error %v", file, err)
	}
}
