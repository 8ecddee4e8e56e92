package bundle

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAMistakeInABundleIsNamedWithItsFileAndLine(t *testing.T) {
	const (
		addonFile         = "demo/addon.yaml"
		kustomizationFile = "demo/2.0.0/kustomization.yaml"
		parametersFile    = "demo/2.0.0/parameters.yaml"
	)
	cases := map[string]struct {
		file, old, new string
		want           string
	}{
		"an unknown field": {
			addonFile, "category:", "categoryy:",
			`demo/addon.yaml:5: unknown field "categoryy"`,
		},
		"a field of the wrong type": {
			addonFile, "versions:\n", "versions: none\nignored:\n",
			"demo/addon.yaml:18: cannot unmarshal !!str `none` into []bundle.Version",
		},
		"broken YAML": {
			addonFile, "kind: Addon", "kind: [",
			"demo/addon.yaml:2: did not find expected ',' or ']'",
		},
		"two documents": {
			addonFile, "", "---\n{}\n",
			"demo/addon.yaml: holds more than one YAML document",
		},
		"an entry that is derived in a way that does not exist": {
			addonFile, "category: other\n", "category: other\nderived:\n- {namespace: a, name: b, key: c, by: magic}\n",
			`demo/addon.yaml:7: derived by "magic": want one of live, corefile, kube-proxy`,
		},
		"an entry that is derived of nothing": {
			addonFile, "category: other\n", "category: other\nderived:\n- {by: live}\n",
			"demo/addon.yaml:7: derived: want the namespace and the name of a ConfigMap, and a key of its data",
		},
		"a health check that does not parse": {
			addonFile, "- version: 2.0.0\n", "- version: 2.0.0\n  health:\n  - {kind: Pod, cel: 'self.spec.'}\n",
			"demo/addon.yaml:26: health: cel: Syntax error: no viable alternative at input '.'",
		},
		"a health check that is no truth": {
			addonFile, "- version: 2.0.0\n", "- version: 2.0.0\n  health:\n  - kind: Pod\n    cel: size(self)\n",
			"demo/addon.yaml:27: health: cel: the expression is int, want bool",
		},
		"a moved object without a kind": {
			addonFile, "- version: 2.0.0\n", "- version: 2.0.0\n  moved:\n  - {name: old}\n",
			"demo/addon.yaml:26: moved: kind is missing",
		},
		"a category that does not exist": {
			addonFile, "category: other", "category: network",
			`demo/addon.yaml:5: category "network": want one of cni, dns, proxy, cloud, csi, metrics, other`,
		},
		"another format": {
			addonFile, "v1alpha1", "v9",
			`demo/addon.yaml:1: apiVersion and kind are "bundle.millwright.dev/v9" and "Addon", want "bundle.millwright.dev/v1alpha1" and "Addon"`,
		},
		"a name that is not the folder's": {
			addonFile, "name: demo\n", "name: other\n",
			`demo/addon.yaml: name is "other", but the folder is "demo"`,
		},
		"a name that is no Kubernetes name": {
			addonFile, "name: demo\n", "name: Demo_1\n",
			`demo/addon.yaml:3: name "Demo_1": want lower-case letters, digits and '-'`,
		},
		"a version that is not semantic": {
			addonFile, "version: 2.0.0", "version: two",
			`demo/addon.yaml:24: version "two" is not a semantic version`,
		},
		"a version there twice": {
			addonFile, "version: 2.0.0", "version: 1.0.0",
			`demo/addon.yaml:24: version "1.0.0" is there twice`,
		},
		"a range that is none": {
			addonFile, `">=1.34 <1.38"`, "newest",
			`demo/addon.yaml:25: kubernetes "newest" is not a range of versions such as ">=1.34 <1.37"`,
		},
		"a phase that does not exist": {
			addonFile, "after-workers", "sometime",
			`demo/addon.yaml:21: phase "sometime": want one of before-control-plane, after-control-plane, after-workers`,
		},
		"a source without TLS": {
			addonFile, "url: https:", "url: http:",
			`demo/addon.yaml:29: source url "http://example.com/demo/v2.0.0/demo.yaml": want https://host/path`,
		},
		"a digest that is too short": {
			addonFile, "sha256: ", "sha256: 12 # ",
			`demo/addon.yaml:30: source sha256 "12": want 64 hexadecimal digits`,
		},
		"a source outside the mirror": {
			addonFile, "path: demo/", "path: ../../demo/",
			`demo/addon.yaml:31: source path "../../demo/v2.0.0/demo.yaml": want a relative path without '..'`,
		},
		"a parameter that no ConfigMap can hold": {
			addonFile, "type: boolean", "type: array",
			`demo/addon.yaml:6: parameters: verbose: type "array": want one of string, integer, number, boolean`,
		},
		"a version without a folder": {
			addonFile, "version: 2.0.0", "version: 2.0.1",
			"demo/2.0.1/kustomization.yaml: the file is missing",
		},
		"a default outside the schema": {
			parametersFile, "mode: safe", "mode: slow",
			`demo/2.0.0/parameters.yaml:7: parameter "mode": value must be one of 'fast', 'safe'`,
		},
		"a default of no parameter": {
			parametersFile, "  mode: safe", "  mode: safe\n  mood: good",
			`demo/2.0.0/parameters.yaml:11: unknown parameter "mood" of the schema in addon.yaml: did you mean "mode"? (there are: mode, mtu, verbose)`,
		},
		"a parameter without a default": {
			parametersFile, "  mode: safe\n", "",
			`demo/2.0.0/parameters.yaml:7: parameter "mode" of addon.yaml has no default here`,
		},
		"a fact that does not exist": {
			parametersFile, "cluster.podCIDR", "cluster.podCidr",
			`demo/2.0.0/parameters.yaml:8: unknown fact "cluster.podCidr": did you mean "cluster.podCIDR"? ` +
				`(there are: cluster.controlPlaneHost, cluster.controlPlanePort, cluster.dnsIP, cluster.domain, cluster.kubernetesVersion, cluster.name, cluster.podCIDR, cluster.serviceCIDR)`,
		},
		"parameters that would be applied": {
			parametersFile, `local-config: "true"`, `other: "true"`,
			`demo/2.0.0/parameters.yaml:3: the annotation config.kubernetes.io/local-config: "true" is missing: without it the parameters would be applied to the cluster`,
		},
		"an address without a digest": {
			kustomizationFile, "- ../base", "- https://example.com/other.yaml",
			"demo/2.0.0/kustomization.yaml:3: resource https://example.com/other.yaml is not among the sources of version 2.0.0 in addon.yaml: name it there with its sha256",
		},
		"a git repository": {
			kustomizationFile, "- ../base", "- github.com/example/demo?ref=main",
			`demo/2.0.0/kustomization.yaml:3: "github.com/example/demo?ref=main" is not a file of the add-on`,
		},
		"a path out of the add-on": {
			kustomizationFile, "- ../base", "- ../../../../etc/passwd",
			`demo/2.0.0/kustomization.yaml:3: "../../../../etc/passwd" is not a file of the add-on`,
		},
		"an absolute path": {
			kustomizationFile, "- ../base", "- /etc/passwd",
			`demo/2.0.0/kustomization.yaml:3: "/etc/passwd" is not a file of the add-on`,
		},
		"a patch from an address": {
			kustomizationFile, "", "patches:\n- path: https://example.com/patch.yaml\n",
			`demo/2.0.0/kustomization.yaml:24: "https://example.com/patch.yaml" is not a file of the add-on`,
		},
		"a patch from an address, in capitals": {
			kustomizationFile, "", "patches:\n- Path: https://example.com/patch.yaml\n",
			`demo/2.0.0/kustomization.yaml:24: field "Path": write it in lower case`,
		},
		"a generator that reads an address": {
			kustomizationFile, "", "configMapGenerator:\n- name: x\n  files: [key=https://example.com/x]\n",
			`demo/2.0.0/kustomization.yaml:24: "https://example.com/x" is not a file of the add-on`,
		},
		"a Helm chart": {
			kustomizationFile, "", "helmCharts:\n- name: x\n",
			`demo/2.0.0/kustomization.yaml:23: field "helmCharts" is not allowed in a bundle`,
		},
		"a program": {
			kustomizationFile, "", "generators: [exec.yaml]\n",
			`demo/2.0.0/kustomization.yaml:23: field "generators" is not allowed in a bundle`,
		},
		"an alias that hides an address": {
			kustomizationFile, "", "metadata:\n  annotations: &x [https://example.com/x]\ncrds: *x\n",
			`demo/2.0.0/kustomization.yaml:25: a YAML alias hides what is read: write it out`,
		},
		"a mistake in what the kustomization builds on": {
			"demo/base/kustomization.yaml", "configmap.yaml", "configmap.yml",
			`demo/base/kustomization.yaml:1: "configmap.yml" is not a file of the add-on`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Load(edited(t, tc.file, tc.old, tc.new))
			if err == nil {
				t.Fatal("the bundle is accepted")
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			var located *FileError
			if !errors.As(err, &located) {
				t.Errorf("the error is a %T, not a *FileError", err)
			}
		})
	}
}

func TestVersionsAreSortedFromTheNewest(t *testing.T) {
	if diff := cmp.Diff([]string{"2.0.0", "1.0.0"}, demo(t).VersionNames()); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
}

func TestAnUnknownNameSuggestsANearOne(t *testing.T) {
	cases := map[string]struct {
		name  string
		known []string
		want  string
	}{
		"a letter left out":     {"caico", []string{"flannel", "calico"}, "calico"},
		"letters changed":       {"calcio", []string{"flannel", "calico"}, "calico"},
		"another case":          {"PodCidr", []string{"podCIDR"}, "podCIDR"},
		"nothing alike":         {"cilium", []string{"flannel", "metrics-server"}, ""},
		"nothing to choose":     {"calico", nil, ""},
		"an empty name is none": {"", []string{"calico"}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := nearest(tc.name, tc.known); got != tc.want {
				t.Errorf("nearest(%q) = %q, want %q", tc.name, got, tc.want)
			}
		})
	}
}
