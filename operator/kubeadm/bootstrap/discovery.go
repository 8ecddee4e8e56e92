package bootstrap

import (
	"fmt"

	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	bootstraputil "k8s.io/cluster-bootstrap/token/util"
	"k8s.io/utils/ptr"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/yaml"

	"github.com/millwright-dev/millwright/internal/pki"
)

// completeDiscovery fills in how the machine finds and trusts the cluster, where the user has left
// that open. What it chooses becomes part of the KubeadmConfig's spec: the token above all, so that
// a second try uses the same.
func completeDiscovery(join *bootstrapv1.JoinConfiguration, cluster *clusterv1.Cluster, ca []byte) error {
	endpoint := cluster.Spec.ControlPlaneEndpoint.String()
	if join.Discovery.File.IsDefined() {
		if kubeconfig := &join.Discovery.File.KubeConfig; kubeconfig.IsDefined() {
			if kubeconfig.Cluster.Server == "" {
				kubeconfig.Cluster.Server = "https://" + endpoint
			}
			if len(kubeconfig.Cluster.CertificateAuthorityData) == 0 {
				kubeconfig.Cluster.CertificateAuthorityData = ca
			}
		}
		return nil
	}
	discovery := &join.Discovery.BootstrapToken
	if discovery.APIServerEndpoint == "" {
		discovery.APIServerEndpoint = endpoint
	}
	if len(discovery.CACertHashes) == 0 && !ptr.Deref(discovery.UnsafeSkipCAVerification, false) {
		hashes, err := pki.CertHashes(ca)
		if err != nil {
			return fmt.Errorf("hash the cluster's authority: %w", err)
		}
		discovery.CACertHashes = hashes
	}
	if discovery.Token == "" {
		token, err := bootstraputil.GenerateBootstrapToken()
		if err != nil {
			return fmt.Errorf("generate bootstrap token: %w", err)
		}
		discovery.Token = token
	}
	return nil
}

// discoveryFile returns the kubeconfig that kubeadm is to discover the cluster by, nil when the
// user's image has one already.
func discoveryFile(discovery bootstrapv1.FileDiscovery) (*bootstrapv1.File, error) {
	if !discovery.KubeConfig.IsDefined() {
		return nil, nil
	}
	const name = "default"
	cluster := discovery.KubeConfig.Cluster
	config := clientcmdv1.Config{
		APIVersion:     "v1",
		Kind:           "Config",
		CurrentContext: name,
		Contexts:       []clientcmdv1.NamedContext{{Name: name, Context: clientcmdv1.Context{Cluster: name, AuthInfo: name}}},
		Clusters: []clientcmdv1.NamedCluster{{Name: name, Cluster: clientcmdv1.Cluster{
			Server:                   cluster.Server,
			TLSServerName:            cluster.TLSServerName,
			InsecureSkipTLSVerify:    ptr.Deref(cluster.InsecureSkipTLSVerify, false),
			CertificateAuthorityData: cluster.CertificateAuthorityData,
			ProxyURL:                 cluster.ProxyURL,
		}}},
		AuthInfos: []clientcmdv1.NamedAuthInfo{{Name: name, AuthInfo: authInfo(discovery.KubeConfig.User)}},
	}
	data, err := yaml.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("encode kubeconfig for discovery: %w", err)
	}
	return &bootstrapv1.File{Path: discovery.KubeConfigPath, Owner: "root:root", Permissions: "0640", Content: string(data)}, nil
}

func authInfo(user bootstrapv1.KubeConfigUser) clientcmdv1.AuthInfo {
	var out clientcmdv1.AuthInfo
	if user.AuthProvider.IsDefined() {
		out.AuthProvider = &clientcmdv1.AuthProviderConfig{Name: user.AuthProvider.Name, Config: user.AuthProvider.Config}
	}
	if user.Exec.IsDefined() {
		out.Exec = &clientcmdv1.ExecConfig{
			Command:            user.Exec.Command,
			Args:               user.Exec.Args,
			APIVersion:         user.Exec.APIVersion,
			ProvideClusterInfo: ptr.Deref(user.Exec.ProvideClusterInfo, false),
			// Nobody sits at a machine that boots.
			InteractiveMode: clientcmdv1.NeverExecInteractiveMode,
		}
		if out.Exec.APIVersion == "" {
			out.Exec.APIVersion = "client.authentication.k8s.io/v1"
		}
		for _, env := range user.Exec.Env {
			out.Exec.Env = append(out.Exec.Env, clientcmdv1.ExecEnvVar{Name: env.Name, Value: env.Value})
		}
	}
	return out
}
