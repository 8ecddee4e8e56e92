package kubeadm

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

type spec = bootstrapv1.KubeadmConfigSpec

func prod() *clusterv1.Cluster {
	return &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "prod"},
		Spec: clusterv1.ClusterSpec{
			ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: "10.0.0.1", Port: 6443},
			ClusterNetwork: clusterv1.ClusterNetwork{
				Pods:          clusterv1.NetworkRanges{CIDRBlocks: []string{"192.168.0.0/16", "fd00:1::/48"}},
				Services:      clusterv1.NetworkRanges{CIDRBlocks: []string{"10.96.0.0/12", "fd00:2::/112"}},
				ServiceDomain: "cluster.local",
			},
		},
	}
}

func args(pairs ...string) []bootstrapv1.Arg {
	var out []bootstrapv1.Arg
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, bootstrapv1.Arg{Name: pairs[i], Value: &pairs[i+1]})
	}
	return out
}

func environment() *[]bootstrapv1.EnvVar {
	return &[]bootstrapv1.EnvVar{{EnvVar: corev1.EnvVar{Name: "GODEBUG", Value: "http2client=0"}}}
}

func volumes() []bootstrapv1.HostPathMount {
	return []bootstrapv1.HostPathMount{{Name: "extra", HostPath: "/etc/extra", MountPath: "/etc/extra", ReadOnly: ptr.To(true), PathType: corev1.HostPathDirectoryOrCreate}}
}

func registration() bootstrapv1.NodeRegistrationOptions {
	return bootstrapv1.NodeRegistrationOptions{
		Name:                  "machine-1",
		CRISocket:             "unix:///run/containerd/containerd.sock",
		Taints:                &[]corev1.Taint{{Key: "dedicated", Value: "gpu", Effect: corev1.TaintEffectNoSchedule}},
		KubeletExtraArgs:      args("cloud-provider", "external", "node-labels", "a=b", "node-labels", "c=d"),
		IgnorePreflightErrors: []string{"Swap"},
		ImagePullPolicy:       corev1.PullIfNotPresent,
		ImagePullSerial:       ptr.To(false),
	}
}

func timeouts() bootstrapv1.Timeouts {
	return bootstrapv1.Timeouts{
		ControlPlaneComponentHealthCheckSeconds: ptr.To[int32](301), KubeletHealthCheckSeconds: ptr.To[int32](302), KubernetesAPICallSeconds: ptr.To[int32](303),
		EtcdAPICallSeconds: ptr.To[int32](304), TLSBootstrapSeconds: ptr.To[int32](305), DiscoverySeconds: ptr.To[int32](306),
	}
}

// initOptions are configurations of the first machine, each with what its name says.
func initOptions() map[string]func(*spec) {
	return map[string]func(*spec){
		"nothing": func(*spec) {},
		"endpoint, repository, certificates' folder": func(s *spec) {
			s.ClusterConfiguration.ControlPlaneEndpoint = "api.example.org:443"
			s.ClusterConfiguration.ImageRepository = "registry.example.org/k8s"
			s.ClusterConfiguration.CertificatesDir = "/srv/pki"
		},
		"API server": func(s *spec) {
			s.ClusterConfiguration.APIServer = bootstrapv1.APIServer{CertSANs: []string{"api.example.org", "10.0.0.1"}, ExtraArgs: args("audit-log-path", "-"), ExtraEnvs: environment(), ExtraVolumes: volumes()}
		},
		"controller manager": func(s *spec) {
			s.ClusterConfiguration.ControllerManager = bootstrapv1.ControllerManager{ExtraArgs: args("cloud-provider", "external"), ExtraEnvs: environment(), ExtraVolumes: volumes()}
		},
		"scheduler": func(s *spec) {
			s.ClusterConfiguration.Scheduler = bootstrapv1.Scheduler{ExtraArgs: args("v", "2"), ExtraEnvs: environment(), ExtraVolumes: volumes()}
		},
		"stacked etcd": func(s *spec) {
			s.ClusterConfiguration.Etcd.Local = bootstrapv1.LocalEtcd{
				ImageRepository: "registry.example.org/etcd", ImageTag: "3.6.4-0", DataDir: "/var/lib/etcddisk/etcd",
				ExtraArgs: args("quota-backend-bytes", "8589934592"), ExtraEnvs: environment(), ServerCertSANs: []string{"etcd.example.org"}, PeerCertSANs: []string{"peer.example.org"},
			}
		},
		"external etcd": func(s *spec) {
			s.ClusterConfiguration.Etcd.External = bootstrapv1.ExternalEtcd{
				Endpoints: []string{"https://10.0.0.9:2379"}, CAFile: "/etc/etcd/ca.crt", CertFile: "/etc/etcd/client.crt", KeyFile: "/etc/etcd/client.key",
			}
		},
		"DNS": func(s *spec) {
			s.ClusterConfiguration.DNS = bootstrapv1.DNS{ImageRepository: "registry.example.org/coredns", ImageTag: "v1.12.1"}
		},
		"feature gate": func(s *spec) {
			s.ClusterConfiguration.FeatureGates = map[string]bool{"RootlessControlPlane": false}
		},
		"validity of certificates": func(s *spec) {
			s.ClusterConfiguration.CertificateValidityPeriodDays, s.ClusterConfiguration.CACertificateValidityPeriodDays = 90, 3650
		},
		"RSA of 2048 bits":   algorithm(bootstrapv1.EncryptionAlgorithmRSA2048),
		"RSA of 3072 bits":   algorithm(bootstrapv1.EncryptionAlgorithmRSA3072),
		"RSA of 4096 bits":   algorithm(bootstrapv1.EncryptionAlgorithmRSA4096),
		"ECDSA of curve 256": algorithm(bootstrapv1.EncryptionAlgorithmECDSAP256),
		"ECDSA of curve 384": algorithm(bootstrapv1.EncryptionAlgorithmECDSAP384),
		"bootstrap tokens": func(s *spec) {
			s.InitConfiguration.BootstrapTokens = []bootstrapv1.BootstrapToken{
				{
					Token: bootstrapv1.BootstrapTokenString{ID: "abcdef", Secret: "0123456789abcdef"}, Description: "for people", TTLSeconds: ptr.To[int32](3600),
					Usages: []string{"signing", "authentication"}, Groups: []string{"system:bootstrappers:kubeadm:default-node-token"},
				},
				{Token: bootstrapv1.BootstrapTokenString{ID: "fedcba", Secret: "0123456789abcdef"}},
			}
		},
		"node registration": func(s *spec) { s.InitConfiguration.NodeRegistration = registration() },
		"no taints at all":  func(s *spec) { s.InitConfiguration.NodeRegistration.Taints = &[]corev1.Taint{} },
		"local endpoint": func(s *spec) {
			s.InitConfiguration.LocalAPIEndpoint = bootstrapv1.APIEndpoint{AdvertiseAddress: "10.0.0.2", BindPort: 6444}
		},
		"skipped phases": func(s *spec) { s.InitConfiguration.SkipPhases = []string{"addon/kube-proxy", "addon/coredns"} },
		"patches":        func(s *spec) { s.InitConfiguration.Patches.Directory = "/etc/kubernetes/patches" },
		"timeouts":       func(s *spec) { s.InitConfiguration.Timeouts = timeouts() },
	}
}

func algorithm(name bootstrapv1.EncryptionAlgorithmType) func(*spec) {
	return func(s *spec) { s.ClusterConfiguration.EncryptionAlgorithm = name }
}

// joinOptions are configurations of further machines. Each starts with a token and the pin of an authority, as we write them.
// The file is a kubeconfig to discover the cluster by: kubeadm wants to see it.
func joinOptions(file string) map[string]func(*bootstrapv1.JoinConfiguration) {
	type join = bootstrapv1.JoinConfiguration
	return map[string]func(*join){
		"a worker": func(*join) {},
		"a control plane machine": func(j *join) {
			j.ControlPlane = &bootstrapv1.JoinControlPlane{LocalAPIEndpoint: bootstrapv1.APIEndpoint{AdvertiseAddress: "10.0.0.3", BindPort: 6443}}
		},
		"node registration": func(j *join) { j.NodeRegistration = registration() },
		"no taints at all":  func(j *join) { j.NodeRegistration.Taints = &[]corev1.Taint{} },
		"authority's place": func(j *join) { j.CACertPath = "/srv/pki/ca.crt" },
		"skipped phases":    func(j *join) { j.SkipPhases = []string{"preflight"} },
		"patches":           func(j *join) { j.Patches.Directory = "/etc/kubernetes/patches" },
		"timeouts":          func(j *join) { j.Timeouts = timeouts() },
		"unsafe, as was asked": func(j *join) {
			j.Discovery.BootstrapToken.CACertHashes, j.Discovery.BootstrapToken.UnsafeSkipCAVerification = nil, ptr.To(true)
		},
		"discovery by file": func(j *join) {
			j.Discovery = bootstrapv1.Discovery{File: bootstrapv1.FileDiscovery{KubeConfigPath: file}, TLSBootstrapToken: "abcdef.0123456789abcdef"}
		},
	}
}
