package kubeconfig

import (
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Key holds the kubeconfig in its Secret (Cluster API's contract of control planes).
const Key = "value"

// SecretName returns the name of the Secret with the kubeconfig of a cluster.
func SecretName(cluster string) string { return cluster + "-kubeconfig" }

// RESTConfig accepts only kubeconfigs that hold all they need. One that runs a program or reads files would run it and
// read them in the operator, or on the user's machine, on behalf of whoever may write a Secret.
func RESTConfig(kubeconfig []byte) (*rest.Config, error) {
	raw, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig cannot be parsed: %w", err)
	}
	if err := clientcmdapi.MinifyConfig(raw); err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	for name, user := range raw.AuthInfos {
		switch {
		case user.Exec != nil, user.AuthProvider != nil:
			return nil, fmt.Errorf("kubeconfig user %q runs a plugin: use a client certificate or a token", name)
		case user.ClientCertificate != "", user.ClientKey != "", user.TokenFile != "":
			return nil, fmt.Errorf("kubeconfig user %q refers to a file: embed its content", name)
		}
	}
	for name, server := range raw.Clusters {
		if server.CertificateAuthority != "" {
			return nil, fmt.Errorf("kubeconfig cluster %q refers to a file: embed its content", name)
		}
	}
	config, err := clientcmd.NewDefaultClientConfig(*raw, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	return config, nil
}
