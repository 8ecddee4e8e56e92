package integration

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fooGroup is the API group of the provider that these tests play: the operator knows its kinds only by their contract.
const fooGroup = "infrastructure.foo.test"

// fooFinalizer keeps an object until the test, as its provider, has done with it.
const fooFinalizer = "foo.test/provider"

// fooCRD is a kind whose spec and status may hold anything.
const fooCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: %[2]ss.%[3]s
  labels: {cluster.x-k8s.io/v1beta2: v1}
spec:
  group: %[3]s
  scope: Namespaced
  names: {kind: %[1]s, listKind: %[1]sList, plural: %[2]ss, singular: %[2]s}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, x-kubernetes-preserve-unknown-fields: true}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
---
`

// fooRBAC is what the aggregated role would grant: here is no controller manager that aggregates.
const fooRBAC = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: foo-provider}
rules:
- {apiGroups: [infrastructure.foo.test], resources: ["*"], verbs: [get, list, watch, create, update, patch, delete]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: foo-provider}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: foo-provider}
subjects:
- {kind: ServiceAccount, namespace: millwright-system, name: millwright-operator}
`

var installFooOnce = sync.OnceValue(func() error {
	return installKinds(fooGroup, "FooCluster", "FooControlPlane", "FooMachine", "FooMachineTemplate", "FooConfig")
})

// installKinds installs CRDs; the operator may read those of fooGroup.
func installKinds(group string, kinds ...string) error {
	var text bytes.Buffer
	for _, kind := range kinds {
		fmt.Fprintf(&text, fooCRD, kind, strings.ToLower(kind), group)
	}
	text.WriteString(fooRBAC)
	// The tests' own context ends with the first of them.
	if err := server.Apply(context.Background(), text.Bytes()); err != nil {
		return err
	}
	return server.Install(context.Background())
}

func installFoo(t *testing.T) {
	t.Helper()
	if err := installFooOnce(); err != nil {
		t.Fatal(err)
	}
}

func fooRef(kind, name string) clusterv1.ContractVersionedObjectReference {
	return clusterv1.ContractVersionedObjectReference{APIGroup: fooGroup, Kind: kind, Name: name}
}

// foo returns an object of the provider that the test plays.
func foo(namespace, kind, name string, spec map[string]any) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": fooGroup + "/v1", "kind": kind}}
	obj.SetNamespace(namespace)
	obj.SetName(name)
	obj.SetFinalizers([]string{fooFinalizer})
	if spec != nil {
		obj.Object["spec"] = spec
	}
	return obj
}

// report writes the status of an object, as its provider would.
func report(t *testing.T, obj *unstructured.Unstructured, status map[string]any) {
	t.Helper()
	patch := client.MergeFrom(obj.DeepCopy())
	obj.Object["status"] = status
	if err := admin.Status().Patch(t.Context(), obj, patch); err != nil {
		t.Fatalf("report the status of %s %q: %v", obj.GetKind(), obj.GetName(), err)
	}
}

// release removes the provider's finalizer.
func release(t *testing.T, obj *unstructured.Unstructured) {
	t.Helper()
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
	if err := admin.Patch(t.Context(), obj, patch); client.IgnoreNotFound(err) != nil {
		t.Fatalf("release %s %q: %v", obj.GetKind(), obj.GetName(), err)
	}
}

// wantDeleting waits until somebody deletes an object.
func wantDeleting(t *testing.T, obj client.Object) {
	t.Helper()
	eventually(t, func() string {
		if get(t, obj).GetDeletionTimestamp() == nil {
			return fmt.Sprintf("%s %q is not being deleted", obj.GetObjectKind().GroupVersionKind().Kind, obj.GetName())
		}
		return ""
	})
}

func wantGone(t *testing.T, obj client.Object) {
	t.Helper()
	eventually(t, func() string {
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("%T %q is still there: %v", obj, obj.GetName(), err)
		}
		return ""
	})
}

// wantCondition waits for a condition with this status and reason whose message contains all parts.
func wantCondition(t *testing.T, obj interface {
	client.Object
	GetConditions() []metav1.Condition
}, conditionType, status, reason string, parts ...string) {
	t.Helper()
	eventually(t, func() string {
		get(t, client.Object(obj))
		for _, c := range obj.GetConditions() {
			if c.Type != conditionType {
				continue
			}
			complete := string(c.Status) == status && c.Reason == reason
			for _, part := range parts {
				complete = complete && strings.Contains(c.Message, part)
			}
			if complete {
				return ""
			}
			return fmt.Sprintf("%s is %s %s: %s\nwant %s %s with %q", conditionType, c.Status, c.Reason, c.Message, status, reason, parts)
		}
		return "no condition " + conditionType
	})
}

// newFooCluster creates a Cluster whose infrastructure is ready, and whose workload cluster is the API server of the
// tests itself: its Nodes are the Nodes of every such cluster, told apart by name.
func newFooCluster(t *testing.T, namespace, name string) *clusterv1.Cluster {
	t.Helper()
	installFoo(t)
	infrastructure := foo(namespace, "FooCluster", name, map[string]any{"controlPlaneEndpoint": map[string]any{"host": "127.0.0.1", "port": int64(6443)}})
	controlPlane := foo(namespace, "FooControlPlane", name, map[string]any{"replicas": int64(1), "version": "v1.37.2"})
	create(t, infrastructure, controlPlane)
	report(t, infrastructure, map[string]any{"initialization": map[string]any{"provisioned": true}})
	report(t, controlPlane, map[string]any{"initialization": map[string]any{"controlPlaneInitialized": true}, "replicas": int64(1), "version": "v1.37.2"})
	cluster := &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       clusterv1.ClusterSpec{InfrastructureRef: fooRef("FooCluster", name), ControlPlaneRef: fooRef("FooControlPlane", name)},
	}
	create(t, cluster, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + "-kubeconfig", Labels: map[string]string{clusterv1.ClusterNameLabel: name}},
		Type:       clusterv1.ClusterSecretType,
		Data:       map[string][]byte{"value": adminKubeconfig(t)},
	})
	return cluster
}

func adminKubeconfig(t *testing.T) []byte { return kubeconfigOf(t, server.Admin) }

func kubeconfigOf(t *testing.T, connection *rest.Config) []byte {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: connection.Host, CertificateAuthorityData: connection.CAData}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{ClientCertificateData: connection.CertData, ClientKeyData: connection.KeyData}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	data, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// newFooMachine returns a stand-alone worker of a cluster; its objects have its name.
func newFooMachine(namespace, cluster, name string) *clusterv1.Machine {
	return &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: clusterv1.MachineSpec{
			ClusterName:       cluster,
			Version:           "1.37.2",
			Bootstrap:         clusterv1.Bootstrap{ConfigRef: fooRef("FooConfig", name)},
			InfrastructureRef: fooRef("FooMachine", name),
		},
	}
}

// newNode returns a Node as a kubelet registers it where no cloud provider runs.
func newNode(name, uuid string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{clusterv1.NodeUninitializedTaint}},
		Status: corev1.NodeStatus{
			NodeInfo:   corev1.NodeSystemInfo{SystemUUID: uuid, KubeletVersion: "v1.37.2"},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"}},
		},
	}
}

// createNode creates a Node with its status.
func createNode(t *testing.T, node *corev1.Node) {
	t.Helper()
	status := node.Status
	create(t, node)
	// A patch: the operator may have labelled the Node already.
	patch := client.MergeFrom(node.DeepCopy())
	node.Status = status
	if err := admin.Status().Patch(t.Context(), node, patch); err != nil {
		t.Fatalf("update the status of Node %q: %v", node.Name, err)
	}
}
