package bundle

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestPatchesAreLaidOverTheObjects(t *testing.T) {
	addon, version := demoVersion(t, "2.0.0")
	sources := map[string][]byte{version.Sources[0].URL: published(t)}
	render := func(custom Customization) ([]*unstructured.Unstructured, error) {
		return Render(Input{Addon: addon, Version: version, Facts: Facts{PodCIDR: "10.0.0.0/16", DNSIP: "10.96.0.10"}, Sources: sources, Custom: custom})
	}
	plain, err := render(Customization{})
	if err != nil {
		t.Fatal(err)
	}
	first := plain[0]
	merge := "apiVersion: " + first.GetAPIVersion() + "\nkind: " + first.GetKind() + "\nmetadata: {name: " + first.GetName() + ", namespace: '" + first.GetNamespace() + "', labels: {mine: 'yes'}}\n"
	target := &Target{Kind: first.GetKind(), Name: first.GetName()}
	for name, tc := range map[string]struct {
		patch Patch
		err   string
	}{
		"a strategic merge patch":       {patch: Patch{Patch: merge}},
		"a JSON patch":                  {patch: Patch{Patch: "- {op: add, path: /metadata/labels, value: {mine: 'yes'}}", Target: target}},
		"a target that is nowhere":      {patch: Patch{Patch: "- {op: remove, path: /spec}", Target: &Target{Kind: "Nothing"}}, err: "patch 1: no object of the add-on is its target"},
		"an object that is nowhere":     {patch: Patch{Patch: "apiVersion: v1\nkind: Secret\nmetadata: {name: nowhere}\n"}, err: "no matches for Id Secret"},
		"a path that is not there":      {patch: Patch{Patch: "- {op: remove, path: /spec/nothing}", Target: target}, err: "lay the patches over it"},
		"what is no patch":              {patch: Patch{Patch: "nonsense", Target: target}, err: "lay the patches over it"},
		"a target that does not parse":  {patch: Patch{Patch: "- {op: remove, path: /spec}", Target: &Target{Kind: "["}}, err: "patch 1: target"},
		"a second target by its labels": {patch: Patch{Patch: "- {op: add, path: /metadata/labels/mine, value: 'yes'}", Target: &Target{LabelSelector: "never=there"}}, err: "patch 1: no object"},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := render(Customization{Patches: []Patch{tc.patch}})
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("error %v, want one that says %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if objects[0].GetLabels()["mine"] != "yes" || len(objects) != len(plain) {
				t.Errorf("%d objects, the first with labels %v; want %d and the patch", len(objects), objects[0].GetLabels(), len(plain))
			}
		})
	}
}

func TestImagesAreRewritten(t *testing.T) {
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for name, tc := range map[string]struct {
		custom      Customization
		image, want string
	}{
		"to a registry":                        {Customization{Registry: "registry.example/mirror/"}, "quay.io/calico/node:v3", "registry.example/mirror/calico/node:v3"},
		"with a port":                          {Customization{Registry: "registry.example:5000"}, "localhost:5000/a/b@" + digest, "registry.example:5000/a/b@" + digest},
		"without a registry of its own":        {Customization{Registry: "registry.example"}, "library/busybox", "registry.example/library/busybox"},
		"by name":                              {Customization{Registry: "registry.example", Images: []Image{{Name: "quay.io/calico/node", NewName: "mine.example/node"}}}, "quay.io/calico/node:v3", "mine.example/node:v3"},
		"to a digest, in the registry as well": {Customization{Registry: "registry.example", Images: []Image{{Name: "quay.io/calico/node", Digest: digest}}}, "quay.io/calico/node:v3", "registry.example/calico/node@" + digest},
		"to another tag":                       {Customization{Images: []Image{{Name: "quay.io/calico/node", NewTag: "v4"}}}, "quay.io/calico/node:v3@" + digest, "quay.io/calico/node:v4"},
	} {
		t.Run(name, func(t *testing.T) {
			object := workload(tc.image)
			if err := tc.custom.rewriteImages([]*unstructured.Unstructured{object}); err != nil {
				t.Fatal(err)
			}
			containers, _, _ := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
			if diff := cmp.Diff(tc.want, containers[0].(map[string]any)["image"]); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	err := Customization{Images: []Image{{Name: "quay.io/calico/nod"}}}.rewriteImages([]*unstructured.Unstructured{workload("quay.io/calico/node:v3")})
	if err == nil || !strings.Contains(err.Error(), "image quay.io/calico/nod is in no object") {
		t.Errorf("error %v, want one that names the image", err)
	}
}

func TestAMistakeInACustomizationIsNamedWithItsLine(t *testing.T) {
	for text, want := range map[string]string{
		"patches:\n- path: x.yaml\n":             `c.yaml:2: unknown field "path"`,
		"images:\n- newTag: v1\n":                "c.yaml:2: images: name is missing",
		"images:\n- name: a\n  digest: md5:1\n":  `c.yaml:3: digest "md5:1"`,
		"patches:\n- target: {kind: Deployment}": "c.yaml:2: patches: the patch has no text",
		"images:\n- {name: a, newTag: b, digest: 'sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef'}\n": "c.yaml:2: image a: either a digest or a tag",
	} {
		if _, err := ParseCustomization("c.yaml", []byte(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
	if c, err := ParseCustomization("c.yaml", []byte("\n")); err != nil || !c.Empty() {
		t.Errorf("an empty file is %+v (%v), want nothing", c, err)
	}
}
