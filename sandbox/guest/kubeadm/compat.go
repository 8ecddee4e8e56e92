package kubeadm

import (
	"errors"

	clientset "k8s.io/client-go/kubernetes"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	kubeadmapi "k8s.io/kubernetes/cmd/kubeadm/app/apis/kubeadm"
	kubeconfigphase "k8s.io/kubernetes/cmd/kubeadm/app/phases/kubeconfig"
	kubeadmutil "k8s.io/kubernetes/cmd/kubeadm/app/util"
	configutil "k8s.io/kubernetes/cmd/kubeadm/app/util/config"
	"k8s.io/kubernetes/cmd/kubeadm/app/util/output"
)

// Two of kubeadm's functions got another argument in v1.36. A type switch on the
// function lets one source build against both forms.

var errUnknownKubeadm = errors.New("this version of kubeadm has a form of the function that the sandbox does not know")

// ensureAdmin makes admin.conf in dir an administrator's and returns its client.
func ensureAdmin(dir string, endpoint *kubeadmapi.APIEndpoint) (clientset.Interface, error) {
	type ensure = kubeconfigphase.EnsureRBACFunc
	switch f := any(kubeconfigphase.EnsureAdminClusterRoleBinding).(type) {
	case func(string, *kubeadmapi.APIEndpoint, ensure) (clientset.Interface, error):
		return f(dir, endpoint, nil)
	case func(string, ensure) (clientset.Interface, error):
		return f(dir, nil)
	}
	return nil, errUnknownKubeadm
}

// fetchInitConfiguration reads the cluster's configuration as a joining node does.
func fetchInitConfiguration(client clientset.Interface) (*kubeadmapi.InitConfiguration, error) {
	const registration, endpoint, componentConfigs, shortRetry = false, false, true, false
	type config = kubeadmapi.InitConfiguration
	switch f := any(configutil.FetchInitConfigurationFromCluster).(type) {
	case func(clientset.Interface, output.Printer, string, bool, bool, bool, bool) (*config, error):
		return f(client, nil, "preflight", registration, endpoint, componentConfigs, shortRetry)
	case func(clientset.Interface, output.Printer, string, bool, bool, bool) (*config, error):
		return f(client, nil, "preflight", registration, endpoint, componentConfigs)
	}
	return nil, errUnknownKubeadm
}

// pointTo makes every cluster of a kubeconfig the API server of this machine.
func pointTo(config *clientcmdapi.Config, endpoint *kubeadmapi.APIEndpoint) error {
	server, err := kubeadmutil.GetLocalAPIEndpoint(endpoint)
	if err != nil {
		return err
	}
	for _, cluster := range config.Clusters {
		cluster.Server = server
	}
	return nil
}
