package apply

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// parse makes an object of YAML.
func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

func TestAnObjectIsNamedAsKubectlNamesIt(t *testing.T) {
	cases := map[string]struct {
		id   ID
		want string
		full string
	}{
		"of the core group":   {ID{Kind: "ConfigMap", Namespace: "a", Name: "b"}, "configmap/b", "configmap/b in namespace a"},
		"of another group":    {ID{Group: "apps", Kind: "DaemonSet", Namespace: "a", Name: "b"}, "daemonset.apps/b", "daemonset.apps/b in namespace a"},
		"without a namespace": {ID{Kind: "Namespace", Name: "a"}, "namespace/a", "namespace/a"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.id.String(); got != tc.want {
				t.Errorf("String() = %q, want %q", got, tc.want)
			}
			if got := tc.id.Full(); got != tc.full {
				t.Errorf("Full() = %q, want %q", got, tc.full)
			}
		})
	}
}
