package management

import (
	"fmt"
	"net"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/millwright-dev/millwright/sandbox/internal/build"
	"github.com/millwright-dev/millwright/sandbox/internal/process"
)

// Ports on the cluster's address. The address is its own, so that the usual
// ports are free.
const (
	etcdPort              = "2379"
	etcdPeerPort          = "2380"
	apiServerPort         = "6443"
	controllerManagerPort = "10257"
)

// advertised is outside loopback, which kube-apiserver insists on (RFC 5737,
// TEST-NET-1). Only the endpoint of the Service "kubernetes" would show it,
// and no pod runs here to follow it.
const advertised = "192.0.2.1"

// Cluster is a cluster that is to run at one address: it only holds objects.
type Cluster struct {
	Host     string
	Binaries build.Binaries
	// PKI holds certificates and the components' kubeconfigs, Etcd the data.
	PKI, Etcd string
	// Prefix tells this cluster's programs from those of another one.
	Prefix string
	// Audit is the file that gets a line for each request; empty for none.
	Audit string
}

// URL is where the API server answers.
func (c Cluster) URL() string { return "https://" + c.at(apiServerPort) }

func (c Cluster) at(port string) string { return net.JoinHostPort(c.Host, port) }

func (c Cluster) pki(file string) string { return filepath.Join(c.PKI, file) }

// Prepare makes certificates, keys and the components' kubeconfigs, and writes
// the administrator's kubeconfig to path.
func (c Cluster) Prepare(admin string) error {
	ca, err := newAuthority(c.PKI, "sandbox")
	if err != nil {
		return err
	}
	for _, make := range []func() error{
		func() error { return ca.server("etcd", c.Host) },
		func() error {
			return ca.server("apiserver", c.Host, "kubernetes", "kubernetes.default", "kubernetes.default.svc")
		},
		func() error { return ca.client("apiserver-etcd", "kube-apiserver") },
		func() error { return ca.client("controller-manager", "system:kube-controller-manager") },
		func() error { return ca.client("admin", "sandbox-admin", "system:masters") },
		func() error { return serviceAccountKey(c.PKI, "sa") },
		func() error { return c.writeKubeconfig(c.pki("controller-manager.conf"), "controller-manager") },
		func() error { return c.writeKubeconfig(admin, "admin") },
	} {
		if err := make(); err != nil {
			return fmt.Errorf("prepare the cluster of %s: %w", c.PKI, err)
		}
	}
	if c.Audit == "" {
		return nil
	}
	return os.WriteFile(c.pki(auditPolicyFile), []byte(auditPolicy), 0o600)
}

// writeKubeconfig writes a kubeconfig for a client certificate, all inside.
func (c Cluster) writeKubeconfig(path, user string) error {
	cert, err := os.ReadFile(c.pki(user + ".crt"))
	if err != nil {
		return err
	}
	key, err := os.ReadFile(c.pki(user + ".key"))
	if err != nil {
		return err
	}
	return c.write(path, user, &clientcmdapi.AuthInfo{ClientCertificateData: cert, ClientKeyData: key})
}

func (c Cluster) write(path, user string, auth *clientcmdapi.AuthInfo) error {
	ca, err := os.ReadFile(c.pki("ca.crt"))
	if err != nil {
		return err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["sandbox"] = &clientcmdapi.Cluster{Server: c.URL(), CertificateAuthorityData: ca}
	config.AuthInfos[user] = auth
	config.Contexts["sandbox"] = &clientcmdapi.Context{Cluster: "sandbox", AuthInfo: user, Namespace: "default"}
	config.CurrentContext = "sandbox"
	return clientcmd.WriteToFile(*config, path)
}

// Program is one component: its process and where it listens.
type Program struct {
	process.Spec
	Listen string
}

// Server returns etcd and the API server, which waits for etcd by itself.
func (c Cluster) Server() []Program {
	return []Program{
		{Listen: c.at(etcdPort), Spec: process.Spec{Name: c.Prefix + build.Etcd, Path: c.Binaries.Etcd, Args: c.etcdArgs()}},
		{Listen: c.at(apiServerPort), Spec: process.Spec{Name: c.Prefix + build.APIServer, Path: c.Binaries.APIServer, Args: c.apiServerArgs()}},
	}
}

// ControllerManager returns what is to be started when the API server is
// ready; before, it would only give up and start again.
func (c Cluster) ControllerManager() Program {
	return Program{Listen: c.at(controllerManagerPort), Spec: process.Spec{
		Name: c.Prefix + build.ControllerManager, Path: c.Binaries.ControllerManager, Args: c.controllerManagerArgs(),
	}}
}

// Config returns the administrator's client configuration.
func Config(kubeconfig string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	// The installation writes some thirty objects at once.
	config.QPS, config.Burst = 100, 200
	return config, nil
}
