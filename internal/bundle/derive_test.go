package bundle

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// textMap is a ConfigMap with one entry.
func textMap(key, text string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "kube-system", "name": "settings"},
		"data": map[string]any{key: text, "other": "rendered"},
	}}
}

func workload(image string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": "kube-system", "name": "settings"},
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"image": image}}}}},
	}}
}

// ownDNS is a Corefile of Kubernetes 1.13 with a zone of the cluster's own.
const ownDNS = ".:53 {\n    errors\n    kubernetes cluster.local {\n        upstream\n    }\n    forward . /etc/resolv.conf\n}\nown.example:53 {\n    forward . 192.0.2.53\n}\n"

func TestWhatAClustersOwnTextBecomes(t *testing.T) {
	const proxy = "# kept\nmode: \"\"\nnodePortAddresses: [192.0.2.0/24]\n"
	cases := map[string]struct {
		by     string
		live   []*unstructured.Unstructured
		values map[string]any
		want   string
		// contains are parts of the outcome where it is not compared as a whole.
		contains []string
		notices  bool
	}{
		"the cluster has none": {by: deriveLive, want: "rendered"},
		"the cluster's ConfigMap has no such entry": {
			by: deriveLive, live: []*unstructured.Unstructured{textMap("another", "live")}, want: "rendered",
		},
		"it is kept": {by: deriveLive, live: []*unstructured.Unstructured{textMap("text", "live")}, want: "live"},
		"kube-proxy's stays as it is": {
			by: deriveKubeProxy, live: []*unstructured.Unstructured{textMap("text", proxy)}, want: proxy,
		},
		"kube-proxy's says already what is given": {
			by: deriveKubeProxy, live: []*unstructured.Unstructured{textMap("text", proxy)}, values: map[string]any{"mode": "iptables"}, want: proxy,
		},
		"kube-proxy's gets the mode that is given": {
			by: deriveKubeProxy, live: []*unstructured.Unstructured{textMap("text", proxy)}, values: map[string]any{"mode": "nftables"},
			want: "mode: nftables\nnodePortAddresses:\n- 192.0.2.0/24\n",
		},
		"a Corefile that nothing runs stays": {
			by: deriveCorefile, live: []*unstructured.Unstructured{textMap("text", ownDNS)}, want: ownDNS,
		},
		"a Corefile of the version that runs stays": {
			by: deriveCorefile, live: []*unstructured.Unstructured{textMap("text", ownDNS), workload("registry.example:5000/coredns:v2.0.0")}, want: ownDNS,
		},
		"a Corefile of an unknown version stays, and that is told": {
			by: deriveCorefile, live: []*unstructured.Unstructured{textMap("text", ownDNS), workload("registry.example/coredns:mine")}, want: ownDNS, notices: true,
		},
		"an old Corefile is migrated": {
			by: deriveCorefile, live: []*unstructured.Unstructured{textMap("text", ownDNS), workload("registry.example/coredns:1.3.1@sha256:aa")},
			contains: []string{"own.example:53 {", "forward . 192.0.2.53", "ready"}, notices: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			addon, version := demoVersion(t, "2.0.0")
			addon.Derived = []Derived{{Namespace: "kube-system", Name: "settings", Key: "text", By: tc.by}}
			object := textMap("text", "rendered")
			notices, err := Input{Addon: addon, Version: version, Values: tc.values}.Derive([]*unstructured.Unstructured{workload("x"), object},
				func(kind schema.GroupKind, namespace, name string) (*unstructured.Unstructured, error) {
					for _, o := range tc.live {
						if o.GroupVersionKind().GroupKind() == kind && o.GetNamespace() == namespace && o.GetName() == name {
							return o, nil
						}
					}
					return nil, nil
				})
			if err != nil {
				t.Fatal(err)
			}
			data, _, _ := unstructured.NestedStringMap(object.Object, "data")
			if diff := cmp.Diff(tc.want, data["text"]); tc.contains == nil && diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
			for _, part := range tc.contains {
				if !strings.Contains(data["text"], part) {
					t.Errorf("%q is missing:\n%s", part, data["text"])
				}
			}
			if data["other"] != "rendered" {
				t.Errorf("an entry that is not derived became %q", data["other"])
			}
			if (len(notices) > 0) != tc.notices {
				t.Errorf("notices %v, want some: %t", notices, tc.notices)
			}
		})
	}
}

func TestTheVersionOfAnImageIsReadFromItsTag(t *testing.T) {
	for image, want := range map[string]string{
		"registry.k8s.io/coredns/coredns:v1.14.6": "1.14.6", "registry.example:5000/coredns": "", "coredns:1.2.3": "1.2.3",
		"registry.example/coredns:v1.11.4-eksbuild.2": "1.11.4", "coredns@sha256:abc": "", "coredns:latest": "",
	} {
		if got := ImageVersion(workload(image)); got != want {
			t.Errorf("%s: version %q, want %q", image, got, want)
		}
	}
}
