package kubeadm

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// The types below are kubeadm's v1beta4 wire format. Where Cluster API's type has the same fields
// under the same names, it is used as it is.

type typeMeta struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

type clusterConfiguration struct {
	typeMeta
	ClusterName                 string                              `json:"clusterName,omitempty"`
	KubernetesVersion           string                              `json:"kubernetesVersion,omitempty"`
	ControlPlaneEndpoint        string                              `json:"controlPlaneEndpoint,omitempty"`
	Networking                  networking                          `json:"networking,omitzero"`
	Etcd                        bootstrapv1.Etcd                    `json:"etcd,omitzero"`
	APIServer                   bootstrapv1.APIServer               `json:"apiServer,omitzero"`
	ControllerManager           bootstrapv1.ControllerManager       `json:"controllerManager,omitzero"`
	Scheduler                   bootstrapv1.Scheduler               `json:"scheduler,omitzero"`
	DNS                         bootstrapv1.DNS                     `json:"dns,omitzero"`
	CertificatesDir             string                              `json:"certificatesDir,omitempty"`
	ImageRepository             string                              `json:"imageRepository,omitempty"`
	FeatureGates                map[string]bool                     `json:"featureGates,omitempty"`
	EncryptionAlgorithm         bootstrapv1.EncryptionAlgorithmType `json:"encryptionAlgorithm,omitempty"`
	CertificateValidityPeriod   *metav1.Duration                    `json:"certificateValidityPeriod,omitempty"`
	CACertificateValidityPeriod *metav1.Duration                    `json:"caCertificateValidityPeriod,omitempty"`
}

type networking struct {
	DNSDomain     string `json:"dnsDomain,omitempty"`
	PodSubnet     string `json:"podSubnet,omitempty"`
	ServiceSubnet string `json:"serviceSubnet,omitempty"`
}

type initConfiguration struct {
	typeMeta
	BootstrapTokens  []bootstrapToken                    `json:"bootstrapTokens,omitempty"`
	NodeRegistration bootstrapv1.NodeRegistrationOptions `json:"nodeRegistration,omitzero"`
	LocalAPIEndpoint bootstrapv1.APIEndpoint             `json:"localAPIEndpoint,omitzero"`
	SkipPhases       []string                            `json:"skipPhases,omitempty"`
	Patches          bootstrapv1.Patches                 `json:"patches,omitzero"`
	Timeouts         *timeouts                           `json:"timeouts,omitempty"`
}

type bootstrapToken struct {
	Token       bootstrapv1.BootstrapTokenString `json:"token"`
	Description string                           `json:"description,omitempty"`
	TTL         *metav1.Duration                 `json:"ttl,omitempty"`
	Usages      []string                         `json:"usages,omitempty"`
	Groups      []string                         `json:"groups,omitempty"`
}

type joinConfiguration struct {
	typeMeta
	NodeRegistration bootstrapv1.NodeRegistrationOptions `json:"nodeRegistration,omitzero"`
	CACertPath       string                              `json:"caCertPath,omitempty"`
	Discovery        discovery                           `json:"discovery"`
	ControlPlane     *bootstrapv1.JoinControlPlane       `json:"controlPlane,omitempty"`
	SkipPhases       []string                            `json:"skipPhases,omitempty"`
	Patches          bootstrapv1.Patches                 `json:"patches,omitzero"`
	Timeouts         *timeouts                           `json:"timeouts,omitempty"`
}

type discovery struct {
	BootstrapToken    bootstrapv1.BootstrapTokenDiscovery `json:"bootstrapToken,omitzero"`
	File              *fileDiscovery                      `json:"file,omitempty"`
	TLSBootstrapToken string                              `json:"tlsBootstrapToken,omitempty"`
}

// fileDiscovery leaves out the kubeconfig that Cluster API's type carries: it becomes a file.
type fileDiscovery struct {
	KubeConfigPath string `json:"kubeConfigPath"`
}

type timeouts struct {
	ControlPlaneComponentHealthCheck *metav1.Duration `json:"controlPlaneComponentHealthCheck,omitempty"`
	KubeletHealthCheck               *metav1.Duration `json:"kubeletHealthCheck,omitempty"`
	KubernetesAPICall                *metav1.Duration `json:"kubernetesAPICall,omitempty"`
	EtcdAPICall                      *metav1.Duration `json:"etcdAPICall,omitempty"`
	TLSBootstrap                     *metav1.Duration `json:"tlsBootstrap,omitempty"`
	Discovery                        *metav1.Duration `json:"discovery,omitempty"`
}

func newClusterConfiguration(in bootstrapv1.ClusterConfiguration, cluster *clusterv1.Cluster, version string) clusterConfiguration {
	network := cluster.Spec.ClusterNetwork
	out := clusterConfiguration{
		typeMeta:             typeMeta{APIVersion: v1beta4, Kind: "ClusterConfiguration"},
		ClusterName:          cluster.Name,
		KubernetesVersion:    version,
		ControlPlaneEndpoint: in.ControlPlaneEndpoint,
		Networking: networking{
			DNSDomain:     network.ServiceDomain,
			PodSubnet:     strings.Join(network.Pods.CIDRBlocks, ","),
			ServiceSubnet: strings.Join(network.Services.CIDRBlocks, ","),
		},
		Etcd:                        in.Etcd,
		APIServer:                   in.APIServer,
		ControllerManager:           in.ControllerManager,
		Scheduler:                   in.Scheduler,
		DNS:                         in.DNS,
		CertificatesDir:             in.CertificatesDir,
		ImageRepository:             in.ImageRepository,
		FeatureGates:                in.FeatureGates,
		EncryptionAlgorithm:         in.EncryptionAlgorithm,
		CertificateValidityPeriod:   days(in.CertificateValidityPeriodDays),
		CACertificateValidityPeriod: days(in.CACertificateValidityPeriodDays),
	}
	if out.ControlPlaneEndpoint == "" && cluster.Spec.ControlPlaneEndpoint.IsValid() {
		out.ControlPlaneEndpoint = cluster.Spec.ControlPlaneEndpoint.String()
	}
	return out
}

func newInitConfiguration(in bootstrapv1.InitConfiguration) initConfiguration {
	out := initConfiguration{
		typeMeta:         typeMeta{APIVersion: v1beta4, Kind: "InitConfiguration"},
		NodeRegistration: in.NodeRegistration,
		LocalAPIEndpoint: in.LocalAPIEndpoint,
		SkipPhases:       in.SkipPhases,
		Patches:          in.Patches,
		Timeouts:         newTimeouts(in.Timeouts),
	}
	for _, token := range in.BootstrapTokens {
		out.BootstrapTokens = append(out.BootstrapTokens, bootstrapToken{
			Token:       token.Token,
			Description: token.Description,
			TTL:         seconds(token.TTLSeconds),
			Usages:      token.Usages,
			Groups:      token.Groups,
		})
	}
	return out
}

func newJoinConfiguration(in bootstrapv1.JoinConfiguration) joinConfiguration {
	out := joinConfiguration{
		typeMeta:         typeMeta{APIVersion: v1beta4, Kind: "JoinConfiguration"},
		NodeRegistration: in.NodeRegistration,
		CACertPath:       in.CACertPath,
		Discovery: discovery{
			BootstrapToken:    in.Discovery.BootstrapToken,
			TLSBootstrapToken: in.Discovery.TLSBootstrapToken,
		},
		ControlPlane: in.ControlPlane,
		SkipPhases:   in.SkipPhases,
		Patches:      in.Patches,
		Timeouts:     newTimeouts(in.Timeouts),
	}
	if in.Discovery.File.IsDefined() {
		out.Discovery.File = &fileDiscovery{KubeConfigPath: in.Discovery.File.KubeConfigPath}
	}
	return out
}

func newTimeouts(in bootstrapv1.Timeouts) *timeouts {
	out := timeouts{
		ControlPlaneComponentHealthCheck: seconds(in.ControlPlaneComponentHealthCheckSeconds),
		KubeletHealthCheck:               seconds(in.KubeletHealthCheckSeconds),
		KubernetesAPICall:                seconds(in.KubernetesAPICallSeconds),
		EtcdAPICall:                      seconds(in.EtcdAPICallSeconds),
		TLSBootstrap:                     seconds(in.TLSBootstrapSeconds),
		Discovery:                        seconds(in.DiscoverySeconds),
	}
	if out == (timeouts{}) {
		return nil
	}
	return &out
}

func seconds(value *int32) *metav1.Duration {
	if value == nil {
		return nil
	}
	return ptr.To(metav1.Duration{Duration: time.Duration(*value) * time.Second})
}

func days(value int32) *metav1.Duration {
	if value == 0 {
		return nil
	}
	return ptr.To(metav1.Duration{Duration: time.Duration(value) * 24 * time.Hour})
}
