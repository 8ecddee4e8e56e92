package incluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/millwright-dev/millwright/test/apiserver"
)

// admin is a client of the API server of all tests of this package, which follow one another: each begins with kubeadm's
// objects anew.
var admin client.WithWatch

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	server, err := apiserver.Start()
	if err != nil {
		return 1, err
	}
	defer func() {
		if stopErr := server.Stop(); err == nil {
			err = stopErr
		}
	}()
	if admin, err = client.NewWithWatch(server.Admin, client.Options{}); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// testContext bounds a test that would otherwise wait for ever.
func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// kubeadmCluster makes kube-system what kubeadm v1.36.3 leaves, with changes to what it made.
func kubeadmCluster(t *testing.T, changes ...func(client.Object)) {
	t.Helper()
	ctx := testContext(t)
	for _, kind := range []client.Object{&rbacv1.Role{}, &rbacv1.RoleBinding{}, &rbacv1.ClusterRole{}, &rbacv1.ClusterRoleBinding{}} {
		list := &metav1.PartialObjectMetadataList{}
		gvk, err := admin.GroupVersionKindFor(kind)
		if err != nil {
			t.Fatal(err)
		}
		list.SetGroupVersionKind(gvk)
		if err := admin.List(ctx, list); err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			if name := list.Items[i].Name; len(name) > 8 && name[:8] == "kubeadm:" {
				remove(t, &list.Items[i])
			}
		}
	}
	data, err := os.ReadFile("../../../operator/kubeadm/incluster/testdata/kubeadm-v1.36.3.yaml")
	if err != nil {
		t.Fatal(err)
	}
	objects, err := apiserver.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		remove(t, object.DeepCopy())
		for _, change := range changes {
			change(object)
		}
		if err := admin.Create(ctx, object); err != nil {
			t.Fatalf("create %s: %v", object.GetName(), err)
		}
	}
}

func remove(t *testing.T, object client.Object) {
	t.Helper()
	if err := admin.Delete(testContext(t), object); client.IgnoreNotFound(err) != nil {
		t.Fatalf("delete %s: %v", object.GetName(), err)
	}
}

func prod(version string, changes ...func(*controlplanev1.KubeadmControlPlane)) (*controlplanev1.KubeadmControlPlane, *clusterv1.Cluster) {
	controlPlane := &controlplanev1.KubeadmControlPlane{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "prod"},
		Spec: controlplanev1.KubeadmControlPlaneSpec{
			Version:           version,
			KubeadmConfigSpec: bootstrapv1.KubeadmConfigSpec{ClusterConfiguration: bootstrapv1.ClusterConfiguration{CertificatesDir: "/etc/kubernetes/pki"}},
		},
	}
	for _, change := range changes {
		change(controlPlane)
	}
	return controlPlane, &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "prod"}}
}

// errKilled is what a write finds after the operator's last one.
var errKilled = errors.New("killed")

// dying returns a client whose writes succeed so many times.
func dying(writes int) client.Client {
	count := func() error {
		if writes--; writes < 0 {
			return errKilled
		}
		return nil
	}
	return interceptor.NewClient(admin, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if err := count(); err != nil {
				return err
			}
			return c.Create(ctx, obj, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if err := count(); err != nil {
				return err
			}
			return c.Patch(ctx, obj, patch, opts...)
		},
	})
}

// state is what a person would compare of the cluster: its ConfigMaps, images and who may what.
func state(t *testing.T) map[string]any {
	t.Helper()
	ctx := testContext(t)
	out := map[string]any{}
	configMaps, deployments, daemonSets := &corev1.ConfigMapList{}, &appsv1.DeploymentList{}, &appsv1.DaemonSetList{}
	bindings, clusterBindings := &rbacv1.RoleBindingList{}, &rbacv1.ClusterRoleBindingList{}
	for _, list := range []client.ObjectList{configMaps, deployments, daemonSets, bindings, clusterBindings} {
		if err := admin.List(ctx, list); err != nil {
			t.Fatal(err)
		}
	}
	for _, item := range configMaps.Items {
		if item.Name == "kubeadm-config" || item.Name == "coredns" {
			out["ConfigMap "+item.Name] = item.Data
		}
	}
	for _, item := range deployments.Items {
		out["Deployment "+item.Name] = item.Spec
	}
	for _, item := range daemonSets.Items {
		out["DaemonSet "+item.Name] = item.Spec
	}
	for _, item := range bindings.Items {
		out["RoleBinding "+item.Name] = item.Subjects
	}
	for _, item := range clusterBindings.Items {
		out["ClusterRoleBinding "+item.Name] = item.Subjects
	}
	return out
}
