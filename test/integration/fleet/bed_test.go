package fleet

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/millwright-dev/millwright/api/addons/v1alpha1"
	"github.com/millwright-dev/millwright/operator/app"
	"github.com/millwright-dev/millwright/test/apiserver"
)

// patience is how long a test waits for what takes a moment; a loaded machine may need much of it.
const patience = time.Minute

// bed is a namespace of the management cluster with a catalogue.
type bed struct {
	t         *testing.T
	namespace string
	catalogue string
}

func newBed(t *testing.T) *bed {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "fleet-"}}
	if err := admin.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	return &bed{t: t, namespace: namespace.Name, catalogue: t.TempDir()}
}

// version is one version of a bundle of the tests.
type version struct {
	name string
	// fields are further lines of the version in addon.yaml, separated by ";".
	fields    string
	manifests string
}

// bundle writes a bundle into the catalogue. Its name is that of the namespace and a suffix, so that no other test has it.
func (b *bed) bundle(suffix string, versions ...version) string {
	b.t.Helper()
	name := b.namespace + "-" + suffix
	var index strings.Builder
	fmt.Fprintf(&index, "apiVersion: bundle.millwright.dev/v1alpha1\nkind: Addon\nname: %s\ndescription: A bundle of a test\ncategory: other\n", name)
	index.WriteString("parameters: {type: object, properties: {color: {type: string, enum: [red, green]}}}\nversions:\n")
	for _, v := range versions {
		fmt.Fprintf(&index, "- version: %s\n  phase: after-workers\n", v.name)
		if !strings.Contains(v.fields, "kubernetes:") {
			index.WriteString("  kubernetes: \">=1.30\"\n")
		}
		for field := range strings.SplitSeq(v.fields, ";") {
			if field != "" {
				fmt.Fprintf(&index, "  %s\n", strings.TrimSpace(field))
			}
		}
		folder := filepath.Join(b.catalogue, name, v.name)
		b.write(filepath.Join(folder, "kustomization.yaml"), "resources: [parameters.yaml, all.yaml]\n"+replacements)
		b.write(filepath.Join(folder, "parameters.yaml"), parameters)
		b.write(filepath.Join(folder, "all.yaml"), v.manifests)
	}
	b.write(filepath.Join(b.catalogue, name, "addon.yaml"), index.String())
	return name
}

const parameters = `apiVersion: v1
kind: ConfigMap
metadata:
  name: addon-parameters
  annotations: {config.kubernetes.io/local-config: "true"}
data: {color: red}
`

// replacements put the parameter color into every ConfigMap that has a color.
const replacements = `replacements:
- source: {kind: ConfigMap, name: addon-parameters, fieldPath: data.color}
  targets:
  - select: {kind: ConfigMap}
    reject: [{name: addon-parameters}]
    fieldPaths: [data.color]
`

func (b *bed) write(file, content string) {
	b.t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// settings is a ConfigMap of a bundle.
func settings(name, value string) string {
	return fmt.Sprintf("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: default, name: %s}\ndata: {key: %s, color: red}\n", name, value)
}

// start runs the controllers of add-ons on the bed's namespace. The returned function stops them where they stand.
func (b *bed) start() (stop func()) {
	b.t.Helper()
	o := app.NewOptions()
	o.Controllers, o.Namespace = []string{"addons"}, b.namespace
	o.Catalogue, o.MetricsAddress, o.ProbeAddress = b.catalogue, "0", "0"
	ctx, cancel := context.WithCancel(context.Background())
	mgr, err := app.NewManager(ctx, operator, o, logr.Discard())
	if err != nil {
		b.t.Fatalf("set up the operator: %v", err)
	}
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			b.t.Errorf("operator: %v", err)
		}
	}
	b.t.Cleanup(stop)
	return stop
}

// cluster makes a Cluster of a version whose workload cluster is a server of the tests.
func (b *bed) cluster(name, kubernetes string, server *apiserver.Server, labels map[string]string) *clusterv1.Cluster {
	b.t.Helper()
	controlPlane := &controlplanev1.KubeadmControlPlane{ObjectMeta: metav1.ObjectMeta{
		Namespace: b.namespace, Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: name},
	}}
	controlPlane.Spec.Version = kubernetes
	controlPlane.Spec.MachineTemplate.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "VSphereMachineTemplate", Name: name}
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name, Labels: labels}}
	cluster.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{APIGroup: controlplanev1.GroupVersion.Group, Kind: "KubeadmControlPlane", Name: name}
	cluster.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "127.0.0.1", Port: 6443}
	b.create(controlPlane, cluster, b.kubeconfig(name, server.Admin.Host, server))
	b.setVersion(name, kubernetes)
	return cluster
}

func (b *bed) kubeconfig(cluster, host string, server *apiserver.Server) *corev1.Secret {
	b.t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: host, CertificateAuthorityData: server.Admin.CAData}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{ClientCertificateData: server.Admin.CertData, ClientKeyData: server.Admin.KeyData}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	data, err := clientcmd.Write(*config)
	if err != nil {
		b.t.Fatal(err)
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: cluster + "-kubeconfig", Labels: map[string]string{clusterv1.ClusterNameLabel: cluster}},
		Type:       clusterv1.ClusterSecretType, Data: map[string][]byte{"value": data},
	}
}

// setVersion plays the controller of a control plane.
func (b *bed) setVersion(cluster, kubernetes string) {
	b.t.Helper()
	controlPlane := &controlplanev1.KubeadmControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: cluster}}
	b.patch(admin.Status(), controlPlane, fmt.Sprintf(`{"status":{"version":%q}}`, kubernetes))
}

type patcher interface {
	Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error
}

func (b *bed) patch(c patcher, obj client.Object, patch string) {
	b.t.Helper()
	if err := c.Patch(b.t.Context(), obj, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		b.t.Fatalf("patch %T %q: %v", obj, obj.GetName(), err)
	}
}

// change changes the spec or metadata of an object of the management cluster.
func (b *bed) change(obj client.Object, patch string) {
	b.t.Helper()
	if err := admin.Patch(b.t.Context(), obj, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		b.t.Fatalf("patch %T %q: %v", obj, obj.GetName(), err)
	}
}

func (b *bed) create(objects ...client.Object) {
	b.t.Helper()
	for _, obj := range objects {
		if err := admin.Create(b.t.Context(), obj); err != nil {
			b.t.Fatalf("create %T %q: %v", obj, obj.GetName(), err)
		}
	}
}

func (b *bed) delete(obj client.Object) {
	b.t.Helper()
	if err := admin.Delete(b.t.Context(), obj); err != nil {
		b.t.Fatalf("delete %T %q: %v", obj, obj.GetName(), err)
	}
}

// release returns a release as a person makes it.
func (b *bed) release(cluster, bundle string, change func(*addonsv1.AddonReleaseSpec)) *addonsv1.AddonRelease {
	release := &addonsv1.AddonRelease{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: addonsv1.AddonReleaseName(cluster, bundle)}}
	release.Spec.ClusterName, release.Spec.Bundle = cluster, bundle
	if change != nil {
		change(&release.Spec)
	}
	return release
}

// eventually calls check until it returns "", and fails with what it returned last.
func (b *bed) eventually(check func() string) {
	b.t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		problem := check()
		if problem == "" {
			return
		}
		select {
		case <-deadline.C:
			b.t.Fatalf("not within %s: %s", patience, problem)
		case <-tick.C:
		}
	}
}

type conditioned interface {
	client.Object
	GetConditions() []metav1.Condition
}

// want waits for a condition of an object.
func (b *bed) want(obj conditioned, kind, status, reason string, parts ...string) {
	b.t.Helper()
	b.eventually(func() string {
		if err := admin.Get(b.t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
			return err.Error()
		}
		for _, c := range obj.GetConditions() {
			if c.Type != kind {
				continue
			}
			complete := string(c.Status) == status && c.Reason == reason && c.ObservedGeneration == obj.GetGeneration()
			for _, part := range parts {
				complete = complete && strings.Contains(c.Message, part)
			}
			if complete {
				return ""
			}
			return fmt.Sprintf("%s of %s is %s %s: %s\nwant %s %s with %q", kind, obj.GetName(), c.Status, c.Reason, c.Message, status, reason, parts)
		}
		return fmt.Sprintf("%s has no condition %s", obj.GetName(), kind)
	})
}

// wantReady waits until a release has a version.
func (b *bed) wantReady(release *addonsv1.AddonRelease, version string) {
	b.t.Helper()
	b.eventually(func() string {
		if err := admin.Get(b.t.Context(), client.ObjectKeyFromObject(release), release); err != nil {
			return err.Error()
		}
		for _, c := range release.Status.Conditions {
			if c.Type == addonsv1.ReadyCondition && c.Status == metav1.ConditionTrue && c.ObservedGeneration == release.Generation && release.Status.Version == version {
				return ""
			}
		}
		return fmt.Sprintf("%s has %q, want %q ready: %+v", release.Name, release.Status.Version, version, release.Status.Conditions)
	})
}

// on returns a client of a workload cluster.
func (b *bed) on(server *apiserver.Server) client.Client {
	b.t.Helper()
	c, err := client.New(server.Admin, client.Options{})
	if err != nil {
		b.t.Fatal(err)
	}
	return c
}

// live reads an object of a workload cluster; nil when there is none.
func (b *bed) live(c client.Client, apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	b.t.Helper()
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(apiVersion)
	object.SetKind(kind)
	err := c.Get(b.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, object)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return object
}

// configMap reads a ConfigMap of namespace default.
func (b *bed) configMap(c client.Client, name string) *unstructured.Unstructured {
	b.t.Helper()
	return b.live(c, "v1", "ConfigMap", "default", name)
}

// value is a key of a ConfigMap's data.
func value(configMap *unstructured.Unstructured, key string) string {
	if configMap == nil {
		return "(there is no such ConfigMap)"
	}
	text, _, _ := unstructured.NestedString(configMap.Object, "data", key)
	return text
}
