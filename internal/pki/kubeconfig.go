package pki

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Kubeconfig returns a kubeconfig for the administrator of the named cluster, whose API server is
// at server (https://host:port) and trusted through the certificates in ca.
func Kubeconfig(clusterName, server string, ca []byte, client KeyPair) ([]byte, error) {
	user := clusterName + "-admin"
	context := user + "@" + clusterName
	config := clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{clusterName: {Server: server, CertificateAuthorityData: ca}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{user: {ClientCertificateData: client.Cert, ClientKeyData: client.Key}},
		Contexts:       map[string]*clientcmdapi.Context{context: {Cluster: clusterName, AuthInfo: user}},
		CurrentContext: context,
	}
	data, err := clientcmd.Write(config)
	if err != nil {
		return nil, fmt.Errorf("encode kubeconfig of cluster %q: %w", clusterName, err)
	}
	return data, nil
}

// KubeconfigStale tells whether a kubeconfig made by Kubeconfig should be made anew: it points to
// another server, trusts another authority, or has lived half of its certificate's time.
func KubeconfigStale(kubeconfig []byte, server string, ca []byte, now time.Time) (bool, error) {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return false, fmt.Errorf("parse kubeconfig: %w", err)
	}
	context := config.Contexts[config.CurrentContext]
	if context == nil {
		return false, errors.New("kubeconfig has no current context")
	}
	cluster, user := config.Clusters[context.Cluster], config.AuthInfos[context.AuthInfo]
	if cluster == nil || user == nil {
		return false, fmt.Errorf("kubeconfig's context %q names a cluster or user that is not there", config.CurrentContext)
	}
	if cluster.Server != server || string(cluster.CertificateAuthorityData) != string(ca) {
		return true, nil
	}
	certificate, err := ParseCertificate(user.ClientCertificateData)
	if err != nil {
		return false, fmt.Errorf("parse client certificate of kubeconfig: %w", err)
	}
	half := certificate.NotBefore.Add(certificate.NotAfter.Sub(certificate.NotBefore) / 2)
	return !now.Before(half), nil
}

// KubeconfigRenewal returns the time at which KubeconfigStale turns true by age.
func KubeconfigRenewal(kubeconfig []byte) (time.Time, error) {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return time.Time{}, fmt.Errorf("parse kubeconfig: %w", err)
	}
	context := config.Contexts[config.CurrentContext]
	if context == nil || config.AuthInfos[context.AuthInfo] == nil {
		return time.Time{}, errors.New("kubeconfig has no current user")
	}
	certificate, err := ParseCertificate(config.AuthInfos[context.AuthInfo].ClientCertificateData)
	if err != nil {
		return time.Time{}, fmt.Errorf("parse client certificate of kubeconfig: %w", err)
	}
	return certificate.NotBefore.Add(certificate.NotAfter.Sub(certificate.NotBefore) / 2), nil
}
