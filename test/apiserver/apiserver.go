package apiserver

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// Server is a running API server with its etcd.
type Server struct {
	// Admin may do everything.
	Admin *rest.Config
	env   *envtest.Environment
}

// Start starts etcd and kube-apiserver on free ports with folders of their own. The caller stops them.
func Start() (*Server, error) { return StartVersion(kubernetesVersion) }

// StartVersion is Start for a kube-apiserver of another version, such as v1.36.3. Where $KUBEBUILDER_ASSETS names
// binaries, it is these.
func StartVersion(version string) (*Server, error) {
	folder, err := binaries(version)
	if err != nil {
		return nil, err
	}
	env := &envtest.Environment{
		BinaryAssetsDirectory:    folder,
		ControlPlaneStartTimeout: time.Minute,
		ControlPlaneStopTimeout:  time.Minute,
	}
	config, err := env.Start()
	if err != nil {
		return nil, fmt.Errorf("start a kube-apiserver from %s: %w", folder, err)
	}
	// Tests create many objects and must not wait for their own client.
	config.QPS = -1
	return &Server{Admin: config, env: env}, nil
}

// Stop ends both processes and removes their folders.
func (s *Server) Stop() error {
	return s.env.Stop()
}

// Operator returns a connection as the operator's service account, with the rights of manifests/rbac and no more.
// Install must have been called.
func (s *Server) Operator(ctx context.Context) (*rest.Config, error) {
	c, err := client.New(s.Admin, client.Options{})
	if err != nil {
		return nil, err
	}
	account := &corev1.ServiceAccount{}
	account.Namespace, account.Name = "millwright-system", "millwright-operator"
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](3600)}}
	if err := c.SubResource("token").Create(ctx, account, request); err != nil {
		return nil, fmt.Errorf("request a token of the operator's service account: %w", err)
	}
	config := rest.AnonymousClientConfig(s.Admin)
	config.BearerToken = request.Status.Token
	return config, nil
}

// manifests returns a folder of manifests/, wherever the test runs.
func manifests(folder string) string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..", "manifests", folder)
}
