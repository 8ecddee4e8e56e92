package bundle_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/millwright-dev/millwright/addons"
	"github.com/millwright-dev/millwright/internal/bundle"
)

// plainFacts are the defaults of the bundles themselves.
func plainFacts(version string) bundle.Facts {
	return bundle.Facts{
		Name: "prod", KubernetesVersion: version, PodCIDR: "10.9.0.0/16", ServiceCIDR: "10.96.0.0/12",
		DNSIP: "10.96.0.10", Domain: "prod.example", ControlPlaneHost: "192.0.2.7", ControlPlanePort: "7443",
	}
}

func catalogue(t *testing.T) *bundle.Catalogue {
	t.Helper()
	loaded, err := bundle.Load(addons.Files)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// renderEntry renders a version of the catalogue; it skips one whose sources need
// a mirror when there is none.
func renderEntry(t *testing.T, addon *bundle.Addon, v *bundle.Version, facts bundle.Facts) []*unstructured.Unstructured {
	t.Helper()
	mirror := os.Getenv("MILLWRIGHT_MIRROR")
	if mirror == "" && len(v.Sources) > 0 {
		t.Skip("MILLWRIGHT_MIRROR names no mirror that has the published files")
	}
	sources, err := (&bundle.Fetcher{Mirror: mirror}).Fetch(context.Background(), v)
	if errors.Is(err, fs.ErrNotExist) && v.Untested {
		t.Skip("the mirror does not have the published files, and the entry says so")
	}
	if err != nil {
		t.Fatal(err)
	}
	objects, err := bundle.Render(bundle.Input{Addon: addon, Version: v, Facts: facts, Sources: sources})
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func TestEveryVersionOfTheCatalogueIsRenderedWithTheImagesItNames(t *testing.T) {
	for _, addon := range catalogue(t).Addons() {
		for i := range addon.Versions {
			v := &addon.Versions[i]
			t.Run(addon.Name+" "+v.Version, func(t *testing.T) {
				objects := renderEntry(t, addon, v, plainFacts("v"+v.Version))
				want := slices.Clone(v.Images)
				slices.Sort(want)
				if diff := cmp.Diff(want, images(objects)); diff != "" {
					t.Errorf("images (-addon.yaml +rendered):\n%s", diff)
				}
			})
		}
	}
}

// images lists the container images of all pod templates, sorted, each once.
func images(objects []*unstructured.Unstructured) []string {
	var found []string
	for _, object := range objects {
		for _, field := range []string{"initContainers", "containers"} {
			containers, _, _ := unstructured.NestedSlice(object.Object, "spec", "template", "spec", field)
			for _, container := range containers {
				image, _, _ := unstructured.NestedString(container.(map[string]any), "image")
				found = append(found, image)
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func TestTheVersionOfEachKubernetesReleaseIsKubeadms(t *testing.T) {
	coredns, err := catalogue(t).Addon("coredns")
	if err != nil {
		t.Fatal(err)
	}
	for kubernetes, want := range map[string]string{
		"v1.34.4": "1.12.1", "v1.35.4": "1.13.1", "v1.36.3": "1.14.2", "v1.37.2": "1.14.6",
	} {
		got, err := bundle.Resolve(coredns, "auto", kubernetes)
		if err != nil {
			t.Fatal(err)
		}
		if got.Version.Version != want || got.Warning != "" {
			t.Errorf("Kubernetes %s: CoreDNS %s (warning %q), want %s", kubernetes, got.Version.Version, got.Warning, want)
		}
	}
}

func TestFactsReachTheirFields(t *testing.T) {
	cases := map[string]struct {
		addon, version string
		kind, name     string
		path           []string
		want           string
	}{
		"the pod CIDR of Calico": {
			"calico", "3.32.1", "DaemonSet", "calico-node", []string{"CALICO_IPV4POOL_CIDR"}, "10.9.0.0/16",
		},
		"the address of the DNS Service": {
			"coredns", "1.14.6", "Service", "kube-dns", []string{"spec", "clusterIP"}, "10.96.0.10",
		},
		"the version of kube-proxy": {
			"kube-proxy", "1.37.0", "DaemonSet", "kube-proxy", []string{"image"}, "registry.k8s.io/kube-proxy:v1.37.2",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			object := entryObject(t, tc.addon, tc.version, tc.kind, tc.name)
			var got string
			switch tc.path[0] {
			case "image", "CALICO_IPV4POOL_CIDR":
				containers, _, _ := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
				got = containerValue(containers[0].(map[string]any), tc.path[0])
			default:
				got, _, _ = unstructured.NestedString(object.Object, tc.path...)
			}
			if got != tc.want {
				t.Errorf("%v of %s is %q, want %q", tc.path, tc.name, got, tc.want)
			}
		})
	}
}

// containerValue is a container's image, or the value of one of its environment variables.
func containerValue(container map[string]any, name string) string {
	if name == "image" {
		return container["image"].(string)
	}
	env, _ := container["env"].([]any)
	for _, item := range env {
		if variable := item.(map[string]any); variable["name"] == name {
			return variable["value"].(string)
		}
	}
	return ""
}

func entryObject(t *testing.T, addonName, version, kind, name string) *unstructured.Unstructured {
	t.Helper()
	addon, err := catalogue(t).Addon(addonName)
	if err != nil {
		t.Fatal(err)
	}
	v, err := addon.Version(version)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range renderEntry(t, addon, v, plainFacts("v1.37.2")) {
		if object.GetKind() == kind && object.GetName() == name {
			return object
		}
	}
	t.Fatalf("%s %s has no %s %s", addonName, version, kind, name)
	return nil
}

func TestFlannelsNetworkIsJSONWithThePodCIDR(t *testing.T) {
	for _, version := range []string{"0.27.4", "0.28.9"} {
		object := entryObject(t, "flannel", version, "ConfigMap", "kube-flannel-cfg")
		text, _, _ := unstructured.NestedString(object.Object, "data", "net-conf.json")
		var network struct {
			Network string
			Backend struct{ Type string }
		}
		if err := json.Unmarshal([]byte(text), &network); err != nil {
			t.Fatalf("flannel %s: net-conf.json: %v\n%s", version, err, text)
		}
		if network.Network != "10.9.0.0/16" || network.Backend.Type != "vxlan" {
			t.Errorf("flannel %s: network %+v, want 10.9.0.0/16 and vxlan", version, network)
		}
	}
}

func TestOurOwnManifestsAreGolden(t *testing.T) {
	for _, entry := range []struct{ addon, version string }{{"coredns", "1.14.6"}, {"kube-proxy", "1.37.0"}, {"node-local-dns", "1.26.8"}, {"kube-vip", "1.2.4"}, {"cluster-autoscaler", "1.35.0"}} {
		t.Run(entry.addon, func(t *testing.T) {
			addon, err := catalogue(t).Addon(entry.addon)
			if err != nil {
				t.Fatal(err)
			}
			v, err := addon.Version(entry.version)
			if err != nil {
				t.Fatal(err)
			}
			bundle.CompareGolden(t, entry.addon+"-"+entry.version+".yaml", bundle.Documents(t, renderEntry(t, addon, v, plainFacts("v1.37.2"))))
		})
	}
}

func TestNothingOfTheClusterThatCiliumWasRenderedForIsLeft(t *testing.T) {
	addon, err := catalogue(t).Addon("cilium")
	if err != nil {
		t.Fatal(err)
	}
	for i := range addon.Versions {
		v := &addon.Versions[i]
		t.Run(v.Version, func(t *testing.T) {
			text := string(bundle.Documents(t, renderEntry(t, addon, v, plainFacts("v1.30.1"))))
			for _, left := range []string{"kops", "example.com", "eni-tags", "test1"} {
				if strings.Contains(text, left) {
					t.Errorf("%q is left", left)
				}
			}
			if n := strings.Count(text, "192.0.2.7"); n != 4 {
				t.Errorf("the control plane's address is there %d times, want in 4 containers", n)
			}
		})
	}
	if ok, err := addon.Versions[0].UpgradesFromVersion(addon.Versions[1].Version); ok || err != nil {
		t.Errorf("1.16 goes to 1.18 in one step (%v): upstream upgrades between neighbours only", err)
	}
}

func TestTheCloudProviderComesWithoutExampleCredentials(t *testing.T) {
	addon, err := catalogue(t).Addon("vsphere-cpi")
	if err != nil {
		t.Fatal(err)
	}
	for i := range addon.Versions {
		for _, object := range renderEntry(t, addon, &addon.Versions[i], plainFacts("v1.36.3")) {
			if kind := object.GetKind(); kind == "Secret" || kind == "ConfigMap" {
				t.Errorf("%s: %s %s would overwrite the cluster's own", addon.Versions[i].Version, kind, object.GetName())
			}
		}
	}
}
