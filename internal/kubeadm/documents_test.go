package kubeadm

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func prod() *clusterv1.Cluster {
	return &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "prod"},
		Spec: clusterv1.ClusterSpec{
			ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: "127.10.0.1", Port: 6443},
			ClusterNetwork: clusterv1.ClusterNetwork{
				Pods:          clusterv1.NetworkRanges{CIDRBlocks: []string{"192.168.0.0/16", "fd00::/48"}},
				Services:      clusterv1.NetworkRanges{CIDRBlocks: []string{"10.96.0.0/12"}},
				ServiceDomain: "cluster.local",
			},
		},
	}
}

func arg(name, value string) bootstrapv1.Arg { return bootstrapv1.Arg{Name: name, Value: &value} }

// full sets every field that has a form of its own in one of the two APIs.
func full() bootstrapv1.KubeadmConfigSpec {
	envs := &[]bootstrapv1.EnvVar{{EnvVar: corev1.EnvVar{Name: "GODEBUG", Value: "http2client=0"}}}
	registration := bootstrapv1.NodeRegistrationOptions{
		Name:                  "{{ ds.meta_data['hostname'] }}",
		CRISocket:             "unix:///run/containerd/containerd.sock",
		KubeletExtraArgs:      []bootstrapv1.Arg{arg("cloud-provider", "external"), arg("node-labels", "a=b")},
		IgnorePreflightErrors: []string{"Swap"},
		ImagePullPolicy:       corev1.PullIfNotPresent,
		ImagePullSerial:       ptr.To(false),
		Taints:                &[]corev1.Taint{},
	}
	limits := bootstrapv1.Timeouts{ControlPlaneComponentHealthCheckSeconds: ptr.To[int32](300), TLSBootstrapSeconds: ptr.To[int32](90)}
	return bootstrapv1.KubeadmConfigSpec{
		ClusterConfiguration: bootstrapv1.ClusterConfiguration{
			ControlPlaneEndpoint: "api.example.org:443",
			Etcd: bootstrapv1.Etcd{Local: bootstrapv1.LocalEtcd{
				DataDir: "/var/lib/etcddisk/etcd", ImageTag: "3.6.4-0", ExtraArgs: []bootstrapv1.Arg{arg("quota-backend-bytes", "8589934592")}, ExtraEnvs: envs,
			}},
			APIServer: bootstrapv1.APIServer{
				CertSANs: []string{"api.example.org"}, ExtraArgs: []bootstrapv1.Arg{arg("audit-log-path", "-")}, ExtraEnvs: envs,
				ExtraVolumes: []bootstrapv1.HostPathMount{{Name: "audit", HostPath: "/etc/audit", MountPath: "/etc/audit", ReadOnly: ptr.To(true), PathType: corev1.HostPathDirectory}},
			},
			ControllerManager:               bootstrapv1.ControllerManager{ExtraArgs: []bootstrapv1.Arg{arg("cloud-provider", "external")}},
			Scheduler:                       bootstrapv1.Scheduler{ExtraArgs: []bootstrapv1.Arg{arg("v", "2")}},
			DNS:                             bootstrapv1.DNS{ImageTag: "v1.14.0"},
			ImageRepository:                 "registry.example.org/k8s",
			FeatureGates:                    map[string]bool{"RootlessControlPlane": false},
			CertificateValidityPeriodDays:   90,
			CACertificateValidityPeriodDays: 3650,
			EncryptionAlgorithm:             bootstrapv1.EncryptionAlgorithmECDSAP256,
		},
		InitConfiguration: bootstrapv1.InitConfiguration{
			BootstrapTokens: []bootstrapv1.BootstrapToken{
				{Token: bootstrapv1.BootstrapTokenString{ID: "abcdef", Secret: "0123456789abcdef"}, TTLSeconds: ptr.To[int32](3600), Usages: []string{"signing", "authentication"}},
			},
			NodeRegistration: registration,
			LocalAPIEndpoint: bootstrapv1.APIEndpoint{BindPort: 6443},
			SkipPhases:       []string{"addon/kube-proxy"},
			Patches:          bootstrapv1.Patches{Directory: "/etc/kubernetes/patches"},
			Timeouts:         limits,
		},
		JoinConfiguration: bootstrapv1.JoinConfiguration{
			NodeRegistration: registration,
			CACertPath:       "/etc/kubernetes/pki/ca.crt",
			ControlPlane:     &bootstrapv1.JoinControlPlane{},
			Discovery: bootstrapv1.Discovery{BootstrapToken: bootstrapv1.BootstrapTokenDiscovery{
				Token: "abcdef.0123456789abcdef", APIServerEndpoint: "127.10.0.1:6443", CACertHashes: []string{"sha256:00"},
			}},
			Timeouts: limits,
		},
	}
}

func TestDocumentsMatchTheirGoldenFiles(t *testing.T) {
	nothing := bootstrapv1.KubeadmConfigSpec{}
	tests := map[string]func() ([]byte, error){
		"init-minimal":  func() ([]byte, error) { return InitConfig(nothing, prod(), "v1.37.2") },
		"init-v1beta4":  func() ([]byte, error) { return InitConfig(full(), prod(), "v1.37.2") },
		"init-v1beta3":  func() ([]byte, error) { return InitConfig(full(), prod(), "v1.30.9") },
		"join-v1beta4":  func() ([]byte, error) { return JoinConfig(full().JoinConfiguration, "v1.31.0-rc.1") },
		"join-v1beta3":  func() ([]byte, error) { return JoinConfig(full().JoinConfiguration, "v1.30.9") },
		"join-by-file":  func() ([]byte, error) { return JoinConfig(joinByFile(), "v1.37.2") },
		"join-a-worker": func() ([]byte, error) { return JoinConfig(joinWorker(), "v1.37.2") },
	}
	for name, render := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := render()
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", name+".yaml")
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("run with -update if this is meant (-want +got):\n%s", diff)
			}
		})
	}
}

func joinByFile() bootstrapv1.JoinConfiguration {
	return bootstrapv1.JoinConfiguration{Discovery: bootstrapv1.Discovery{File: bootstrapv1.FileDiscovery{
		KubeConfigPath: "/etc/kubernetes/discovery.conf",
		KubeConfig:     bootstrapv1.FileDiscoveryKubeConfig{User: bootstrapv1.KubeConfigUser{Exec: bootstrapv1.KubeConfigAuthExec{Command: "token"}}},
	}}}
}

func joinWorker() bootstrapv1.JoinConfiguration {
	join := full().JoinConfiguration
	join.ControlPlane = nil
	join.Timeouts = bootstrapv1.Timeouts{}
	join.NodeRegistration = bootstrapv1.NodeRegistrationOptions{
		Name:   "{{ local_hostname }}",
		Taints: &[]corev1.Taint{clusterv1.NodeUninitializedTaint},
	}
	return join
}

func TestVersionThatKubeadmCannotServeIsRefused(t *testing.T) {
	for version, want := range map[string]string{"v1.21.14": "use v1.22 or later", "": "give it as", "latest": "give it as"} {
		if _, err := JoinConfig(bootstrapv1.JoinConfiguration{}, version); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("version %q: error %v, want %q in it", version, err, want)
		}
	}
}

func TestATokenWithAFixedEndIsRefusedByItsField(t *testing.T) {
	spec := full()
	spec.InitConfiguration.BootstrapTokens[0].Expires = metav1.Unix(4102444800, 0)
	_, err := InitConfig(spec, prod(), "v1.37.2")
	if err == nil || !strings.Contains(err.Error(), "initConfiguration.bootstrapTokens[0].expires") || !strings.Contains(err.Error(), "ttlSeconds") {
		t.Errorf("error %v, want one that names the field and ttlSeconds", err)
	}
}
