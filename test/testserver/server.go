package testserver

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/millwright-dev/millwright/test/apiserver"
)

// Server is a kube-apiserver with its etcd.
type Server struct {
	// Config connects as an administrator.
	Config *rest.Config
	// Kubeconfig is the path of a file that does the same.
	Kubeconfig string
}

// Start starts a server that ends with the test, with the CRDs of the repository
// and those of the files crds.
func Start(t testing.TB, crds ...string) *Server {
	t.Helper()
	server, err := apiserver.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Errorf("stop kube-apiserver: %v", err)
		}
	})
	for _, path := range crds {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := server.Apply(t.Context(), data); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	// Also waits until those above are served.
	if err := server.Install(t.Context(), "crds"); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(kubeconfig(server.Admin), path); err != nil {
		t.Fatalf("write a kubeconfig: %v", err)
	}
	return &Server{Config: server.Admin, Kubeconfig: path}
}

// kubeconfig holds what config holds.
func kubeconfig(config *rest.Config) api.Config {
	const name = "test"
	return api.Config{
		CurrentContext: name,
		Contexts:       map[string]*api.Context{name: {Cluster: name, AuthInfo: name}},
		Clusters:       map[string]*api.Cluster{name: {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*api.AuthInfo{name: {ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}},
	}
}
