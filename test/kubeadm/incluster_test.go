package kubeadm

import (
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/millwright-dev/millwright/internal/kubeadm"
	"github.com/millwright-dev/millwright/operator/kubeadm/incluster"
	"github.com/millwright-dev/millwright/test/apiserver"
)

// TestWhatKubeadmLeavesInAClusterIsLeftAsItIs lets the kubeadm of each version put its configuration, rights and add-ons
// into a cluster: there must be nothing to do for that version, and the next kubeadm must take what an upgrade makes of it.
func TestWhatKubeadmLeavesInAClusterIsLeftAsItIs(t *testing.T) {
	program(t, versions[0]) // skips before anything is started
	log.SetLogger(logr.Discard())
	server, err := apiserver.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	admin, err := client.NewWithWatch(server.Admin, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	// kubeadm init makes it with its first kubeconfig, which takes certificates.
	admins := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "kubeadm:cluster-admins"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "kubeadm:cluster-admins"}},
	}
	if err := admin.Create(testContext(t), admins); err != nil {
		t.Fatal(err)
	}
	kubeconfig := kubeconfigFile(t, server.Admin)
	for i, version := range versions {
		t.Run(version, func(t *testing.T) {
			for _, phase := range []string{"upload-config all", "bootstrap-token", "addon all"} {
				runPhase(t, version, kubeconfig, phase, func(*spec) {})
			}
			if out, err := incluster.Finish(testContext(t), readOnly(admin), controlPlane(version, func(*spec) {})); err != nil || len(out.Changes)+len(out.Problems) > 0 {
				t.Errorf("finish: error %v, changes %v, problems %v; want none", err, out.Changes, out.Problems)
			}
			for name, set := range storedOptions() {
				runPhase(t, version, kubeconfig, "upload-config kubeadm", set)
				out, err := incluster.Prepare(testContext(t), readOnly(admin), controlPlane(version, set), oneService())
				if err != nil || len(out.Changes)+len(out.Problems) > 0 {
					t.Errorf("%s: error %v, changes %v, problems %v; want none of\n%s", name, err, out.Changes, out.Problems, stored(t, admin))
				}
				if i+1 < len(versions) {
					upgraded(t, name, stored(t, admin), versions[i+1], set)
				}
			}
		})
	}
}

// storedOptions are few configurations that together have every option: each costs runs of kubeadm.
func storedOptions() map[string]func(*spec) {
	options := initOptions()
	everything := func(s *spec) {
		for _, name := range slices.Sorted(maps.Keys(options)) {
			if name != "external etcd" {
				options[name](s)
			}
		}
	}
	return map[string]func(*spec){"nothing": options["nothing"], "external etcd": options["external etcd"], "everything": everything}
}

// upgraded brings a stored configuration to a version and asks its kubeadm.
func upgraded(t *testing.T, name, stored, version string, set func(*spec)) {
	t.Helper()
	s := spec{}
	set(&s)
	text, err := kubeadm.UpdateClusterConfiguration(stored, s, oneService(), version)
	if err != nil {
		t.Errorf("%s: to %s: %v", name, version, err)
		return
	}
	if !strings.Contains(text, "kubernetesVersion: "+version+"\n") {
		t.Errorf("%s: to %s:\n%s", name, version, text)
	}
	if err := judge(t, program(t, version), []byte(text)); err != nil {
		t.Errorf("%s: to %s: %v\n%s", name, version, err, text)
	}
}

func controlPlane(version string, set func(*spec)) *controlplanev1.KubeadmControlPlane {
	out := &controlplanev1.KubeadmControlPlane{ObjectMeta: metav1.ObjectMeta{Name: "prod"}, Spec: controlplanev1.KubeadmControlPlaneSpec{Version: version}}
	set(&out.Spec.KubeadmConfigSpec)
	return out
}

// oneService is the Cluster with the network of the test's API server.
func oneService() *clusterv1.Cluster {
	cluster := prod()
	cluster.Spec.ClusterNetwork.Pods.CIDRBlocks = []string{"192.168.0.0/16"}
	cluster.Spec.ClusterNetwork.Services.CIDRBlocks = []string{"10.0.0.0/24"}
	return cluster
}

func runPhase(t *testing.T, version, kubeconfig, phase string, set func(*spec)) {
	t.Helper()
	s := spec{InitConfiguration: bootstrapv1.InitConfiguration{NodeRegistration: bootstrapv1.NodeRegistrationOptions{CRISocket: "unix:///run/containerd/containerd.sock"}}}
	set(&s)
	documents, err := kubeadm.InitConfig(s, oneService(), version)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubeadm.yaml")
	if err := os.WriteFile(path, documents, 0o600); err != nil {
		t.Fatal(err)
	}
	arguments := append([]string{"init", "phase"}, strings.Fields(phase)...)
	out, err := exec.CommandContext(testContext(t), program(t, version), append(arguments, "--config", path, "--kubeconfig", kubeconfig)...).CombinedOutput()
	if err != nil {
		t.Fatalf("kubeadm %s: %v\n%s", phase, err, out)
	}
}

func stored(t *testing.T, c client.Client) string {
	t.Helper()
	config := &corev1.ConfigMap{}
	if err := c.Get(testContext(t), client.ObjectKey{Namespace: "kube-system", Name: "kubeadm-config"}, config); err != nil {
		t.Fatal(err)
	}
	return config.Data["ClusterConfiguration"]
}

// readOnly returns a client whose writes fail.
func readOnly(c client.WithWatch) client.Client {
	refused := errors.New("there should be nothing to write")
	return interceptor.NewClient(c, interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return refused },
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return refused
		},
	})
}

func kubeconfigFile(t *testing.T, config *rest.Config) string {
	t.Helper()
	const name = "test"
	out := clientcmdapi.NewConfig()
	out.Clusters[name] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	out.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}
	out.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	out.CurrentContext = name
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*out, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}
