package main

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/cli"
	"github.com/millwright-dev/millwright/internal/kubeconfig"
	"github.com/millwright-dev/millwright/test/testserver"
)

var update = flag.Bool("update", false, "write the output that the scripts got into them")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"kubectl-addons":          main,
		"kubectl_complete-addons": main,
	})
}

// TestScripts runs the scripts against one API server, which is both a management
// cluster and the workload cluster "prod" of its own. A script takes the add-ons
// off that it installed: there is one set of a name in a cluster.
func TestScripts(t *testing.T) {
	server := testserver.Start(t)
	c, err := client.New(server.Config, client.Options{Scheme: cli.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	own, err := os.ReadFile(server.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if err := makeClusters(t.Context(), c, own); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("KUBECONFIG", server.Kubeconfig)
			env.Setenv("KUBECONFIG_SERVER", server.Kubeconfig)
			env.Setenv("KUBECACHEDIR", filepath.Join(env.WorkDir, "kubecache"))
			env.Setenv("MILLWRIGHT_CACHE", filepath.Join(env.WorkDir, "cache"))
			env.Setenv("MILLWRIGHT_MIRROR", os.Getenv("MILLWRIGHT_MIRROR"))
			env.Values[clientKey{}] = c
			return nil
		},
		Condition: func(name string) (bool, error) { return name == "mirror" && os.Getenv("MILLWRIGHT_MIRROR") != "", nil },
		Cmds:      map[string]func(*testscript.TestScript, bool, []string){"patch": patch, "flip": flip, "create": create, "holds": holds},
	})
}

type clientKey struct{}

// makeClusters makes the workload cluster "prod", whose API server is this one,
// "new", which has no kubeconfig yet, "dead", where nobody answers, and "trap",
// whose kubeconfig would run a program.
func makeClusters(ctx context.Context, c client.Client, own []byte) error {
	dead := []byte(`{apiVersion: v1, kind: Config, current-context: x, clusters: [{name: x, cluster: {server: "https://127.0.0.1:1"}}], ` +
		`contexts: [{name: x, context: {cluster: x}}]}`)
	trap := []byte(`{apiVersion: v1, kind: Config, current-context: x, clusters: [{name: x, cluster: {server: "https://127.0.0.1:1"}}], ` +
		`users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: touch, args: [trapped], interactiveMode: Never}}}], ` +
		`contexts: [{name: x, context: {cluster: x, user: u}}]}`)
	if err := c.Create(ctx, controlPlane("prod")); err != nil {
		return err
	}
	for name, config := range map[string][]byte{"prod": own, "new": nil, "dead": dead, "trap": trap} {
		cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		cluster.Spec.ClusterNetwork.Pods.CIDRBlocks = []string{"10.7.0.0/16"}
		cluster.Spec.ClusterNetwork.Services.CIDRBlocks = []string{"10.0.0.0/24"}
		cluster.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "192.0.2.7", Port: 6443}
		cluster.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{
			APIGroup: controlplanev1.GroupVersion.Group, Kind: "KubeadmControlPlane", Name: name,
		}
		if err := c.Create(ctx, cluster); err != nil {
			return err
		}
		if config == nil {
			continue
		}
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: kubeconfig.SecretName(name)},
			Type:       clusterv1.ClusterSecretType, Data: map[string][]byte{kubeconfig.Key: config},
		}
		if err := c.Create(ctx, secret); err != nil {
			return err
		}
	}
	return nil
}

// controlPlane is as much of a KubeadmControlPlane as the API server demands.
func controlPlane(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": controlplanev1.GroupVersion.String(), "kind": "KubeadmControlPlane",
		"metadata": map[string]any{"namespace": "default", "name": name},
		"spec": map[string]any{
			"version": "v1.37.2",
			"machineTemplate": map[string]any{"spec": map[string]any{"infrastructureRef": map[string]any{
				"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "VSphereMachineTemplate", "name": name,
			}}},
		},
	}}
}

// patch changes an object as somebody else would: patch APIVERSION KIND NAMESPACE NAME JSON.
func patch(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 5 || neg {
		ts.Fatalf("usage: patch APIVERSION KIND NAMESPACE NAME JSON")
	}
	obj := &unstructured.Unstructured{}
	obj.SetAPIVersion(args[0])
	obj.SetKind(args[1])
	obj.SetNamespace(args[2])
	obj.SetName(args[3])
	change := client.RawPatch(types.MergePatchType, []byte(args[4]))
	ts.Check(ts.Value(clientKey{}).(client.Client).Patch(context.Background(), obj, change, client.FieldOwner("somebody")))
}

// create makes the objects of a file as another tool would: create MANAGER FILE.
func create(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 || neg {
		ts.Fatalf("usage: create MANAGER FILE")
	}
	objects, err := testserver.Parse(ts.MkAbs(args[1]))
	ts.Check(err)
	for _, object := range objects {
		ts.Check(ts.Value(clientKey{}).(client.Client).Create(context.Background(), object, client.FieldOwner(args[0])))
	}
}

// holds tells whether the text of an object, as JSON, holds another: [!] holds APIVERSION KIND NAMESPACE NAME TEXT.
func holds(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 5 {
		ts.Fatalf("usage: holds APIVERSION KIND NAMESPACE NAME TEXT")
	}
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(args[0])
	object.SetKind(args[1])
	ts.Check(ts.Value(clientKey{}).(client.Client).Get(context.Background(), client.ObjectKey{Namespace: args[2], Name: args[3]}, object))
	content, err := object.MarshalJSON()
	ts.Check(err)
	if strings.Contains(string(content), args[4]) == neg {
		ts.Fatalf("%s %s: %s", args[1], args[3], content)
	}
}

// flip copies a file of the mirror with one byte changed: flip PATH FOLDER.
func flip(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 || neg {
		ts.Fatalf("usage: flip PATH FOLDER")
	}
	content, err := os.ReadFile(filepath.Join(ts.Getenv("MILLWRIGHT_MIRROR"), args[0]))
	ts.Check(err)
	content[len(content)/2] ^= 1
	to := filepath.Join(ts.MkAbs(args[1]), args[0])
	ts.Check(os.MkdirAll(filepath.Dir(to), 0o755))
	ts.Check(os.WriteFile(to, content, 0o644))
}
