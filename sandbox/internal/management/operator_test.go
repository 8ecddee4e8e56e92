package management

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func object(kind, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": name, "namespace": "millwright-system"},
	}}
}

// deployment is one like that in manifests/operator.
func deployment() *unstructured.Unstructured {
	d := object("Deployment", "millwright-operator")
	d.Object["spec"] = map[string]any{"template": map[string]any{"spec": map[string]any{
		"serviceAccountName": "millwright-operator",
		"containers": []any{map[string]any{
			"name": "operator",
			"args": []any{"--leader-elect", "--metrics-bind-address=:8080", "--mirror=https://example.org:443"},
			"env": []any{
				map[string]any{"name": "POD_NAME", "valueFrom": map[string]any{"fieldRef": map[string]any{"fieldPath": "metadata.name"}}},
				map[string]any{"name": "POD_NAMESPACE", "valueFrom": map[string]any{"fieldRef": map[string]any{"fieldPath": "metadata.namespace"}}},
				map[string]any{"name": "PLAIN", "value": "x"},
			},
			"ports": []any{
				map[string]any{"name": "metrics", "containerPort": int64(8080)},
				map[string]any{"name": "health", "containerPort": int64(8081)},
			},
			"readinessProbe": map[string]any{"httpGet": map[string]any{"path": "/readyz", "port": "health"}},
		}},
	}}}
	return d
}

func operator(t *testing.T) Operator {
	t.Helper()
	m, err := sortManifests([]*unstructured.Unstructured{deployment()})
	if err != nil {
		t.Fatal(err)
	}
	return Operator{Cluster: Cluster{Host: "127.70.0.1"}, Path: "/bin/operator", Dir: "/sandbox/operator", Deployment: m.Operator}
}

func TestManifestsAreAppliedInTheOrderInWhichTheyNeedEachOther(t *testing.T) {
	m, err := sortManifests([]*unstructured.Unstructured{
		object("ClusterRole", "role"), object("CustomResourceDefinition", "crd"), deployment(), object("Namespace", "namespace"),
	})
	if err != nil {
		t.Fatal(err)
	}
	names := func(list []*unstructured.Unstructured) (names []string) {
		for _, o := range list {
			names = append(names, o.GetName())
		}
		return names
	}
	if diff := cmp.Diff([]string{"crd", "namespace"}, names(m.First)); diff != "" {
		t.Errorf("first (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"role"}, names(m.Then)); diff != "" {
		t.Errorf("then (-want +got):\n%s", diff)
	}
	if m.Operator == nil || m.Operator.Name != "millwright-operator" {
		t.Errorf("operator %v", m.Operator)
	}
}

func TestTheOperatorRunsAsItsDeploymentSays(t *testing.T) {
	o := operator(t)
	spec, err := o.Spec()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"--leader-elect", "--metrics-bind-address=127.70.0.1:8080", "--mirror=https://example.org:443"}
	if diff := cmp.Diff(want, spec.Args); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
	for _, v := range []string{
		"KUBECONFIG=/sandbox/operator/kubeconfig", "POD_NAME=millwright-operator-0", "POD_NAMESPACE=millwright-system", "PLAIN=x",
	} {
		if !slices.Contains(spec.Env, v) {
			t.Errorf("the environment lacks %s", v)
		}
	}
	url, err := o.probe()
	if err != nil || url != "http://127.70.0.1:8081/readyz" || o.Listen() != "127.70.0.1:8080" {
		t.Errorf("probe %s, listen %s, error %v", url, o.Listen(), err)
	}
}

func TestWhatTheSandboxCannotGiveTheOperatorIsNamed(t *testing.T) {
	o := operator(t)
	container := &o.Deployment.Spec.Template.Spec.Containers[0]
	container.Env = []corev1.EnvVar{{Name: "NODE", ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"},
	}}}
	if _, err := o.Spec(); err == nil || !strings.Contains(err.Error(), "NODE is spec.nodeName") {
		t.Errorf("error %v, want one about NODE", err)
	}
}
