package bundle

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/resid"
)

// Customization is what a user changes of a rendered bundle.
type Customization struct {
	// Patches are laid over the objects, in order.
	Patches []Patch `json:"patches,omitempty" yaml:"patches"`
	// Registry stands for the registry of every image, such as registry.example/mirror.
	Registry string `json:"registry,omitempty" yaml:"registry"`
	// Images replace single images, before Registry and instead of it.
	Images []Image `json:"images,omitempty" yaml:"images"`
}

// Patch is a strategic merge patch, or a JSON patch (RFC 6902) with a target, as
// kustomize has them; its text is in it.
type Patch struct {
	Patch  string  `json:"patch" yaml:"patch"`
	Target *Target `json:"target,omitempty" yaml:"target,omitempty"`
}

// Target selects the objects of a patch; all given fields have to match, names as regular expressions.
type Target struct {
	Group         string `json:"group,omitempty" yaml:"group,omitempty"`
	Version       string `json:"version,omitempty" yaml:"version,omitempty"`
	Kind          string `json:"kind,omitempty" yaml:"kind,omitempty"`
	Namespace     string `json:"namespace,omitempty" yaml:"namespace,omitempty"`
	Name          string `json:"name,omitempty" yaml:"name,omitempty"`
	LabelSelector string `json:"labelSelector,omitempty" yaml:"labelSelector,omitempty"`
}

// Image replaces one image by another name, tag or digest.
type Image struct {
	// Name is the image as the bundle has it, without tag and digest.
	Name    string `json:"name" yaml:"name"`
	NewName string `json:"newName,omitempty" yaml:"newName"`
	NewTag  string `json:"newTag,omitempty" yaml:"newTag"`
	// Digest is sha256: and 64 hexadecimal digits.
	Digest string `json:"digest,omitempty" yaml:"digest"`
}

// Empty tells whether nothing is changed.
func (c Customization) Empty() bool {
	return len(c.Patches) == 0 && c.Registry == "" && len(c.Images) == 0
}

// String is the customization as ParseCustomization reads it; empty where nothing is changed.
func (c Customization) String() string {
	if c.Empty() {
		return ""
	}
	content, _ := json.Marshal(c) // strings only: cannot fail
	return string(content)
}

// ParseCustomization reads a customization strictly; mistakes are *FileErrors.
func ParseCustomization(file string, content []byte) (Customization, error) {
	var c Customization
	if len(strings.TrimSpace(string(content))) == 0 {
		return c, nil
	}
	if err := strictYAML(content, &c); err != nil {
		return c, yamlError(file, err)
	}
	var root yaml.Node
	if err := yaml.Unmarshal(content, &root); err != nil {
		return c, yamlError(file, err)
	}
	check := checker{file: file, root: &root}
	for i, image := range c.Images {
		switch {
		case image.Name == "":
			check.fail([]any{"images", i}, "images: name is missing")
		case image.Digest != "" && !strings.HasPrefix(image.Digest, "sha256:"):
			check.fail([]any{"images", i, "digest"}, "digest %q: want sha256: and 64 hexadecimal digits", image.Digest)
		case image.Digest != "" && !sha256Format.MatchString(strings.TrimPrefix(image.Digest, "sha256:")):
			check.fail([]any{"images", i, "digest"}, "digest %q: want sha256: and 64 hexadecimal digits", image.Digest)
		case image.Digest != "" && image.NewTag != "":
			check.fail([]any{"images", i}, "image %s: either a digest or a tag", image.Name)
		}
	}
	for i, patch := range c.Patches {
		if strings.TrimSpace(patch.Patch) == "" {
			check.fail([]any{"patches", i}, "patches: the patch has no text")
		}
	}
	if check.err != nil {
		return c, check.err
	}
	return c, nil
}

// overlayFolder is where patches are built on top of a version. No version has this name.
const overlayFolder = "/.overlay"

// overlay writes a kustomization that lays the patches over a version.
func (c Customization) overlay(memory filesys.FileSystem, version string) error {
	type kustomization struct {
		Resources []string `yaml:"resources"`
		Patches   []Patch  `yaml:"patches"`
	}
	content, err := yaml.Marshal(kustomization{Resources: []string{"../" + version}, Patches: c.Patches})
	if err != nil {
		return fmt.Errorf("write the patches: %w", err)
	}
	return memory.WriteFile(overlayFolder+"/"+kustomizationFile, content)
}

// checkTargets refuses a patch with a target that is nowhere: kustomize would pass over it.
func (c Customization) checkTargets(objects resmap.ResMap) error {
	for i, patch := range c.Patches {
		if patch.Target == nil {
			continue
		}
		t := patch.Target
		found, err := objects.Select(types.Selector{
			ResId:         resid.NewResIdWithNamespace(resid.Gvk{Group: t.Group, Version: t.Version, Kind: t.Kind}, t.Name, t.Namespace),
			LabelSelector: t.LabelSelector,
		})
		if err != nil {
			return fmt.Errorf("patch %d: target: %w", i+1, err)
		}
		if len(found) == 0 {
			return fmt.Errorf("patch %d: no object of the add-on is its target", i+1)
		}
	}
	return nil
}

// rewriteImages gives the containers of the objects the images that are asked
// for. An image that is named and nowhere is an error.
func (c Customization) rewriteImages(objects []*unstructured.Unstructured) error {
	if c.Registry == "" && len(c.Images) == 0 {
		return nil
	}
	seen := map[string]bool{}
	for _, object := range objects {
		eachContainer(object.Object, func(container map[string]any) {
			if image, ok := container["image"].(string); ok {
				container["image"] = c.rewrite(image, seen)
			}
		})
	}
	for _, image := range c.Images {
		if !seen[image.Name] {
			return fmt.Errorf("image %s is in no object of the add-on", image.Name)
		}
	}
	return nil
}

func (c Customization) rewrite(image string, seen map[string]bool) string {
	name, suffix := splitImage(image)
	i := slices.IndexFunc(c.Images, func(rule Image) bool { return rule.Name == name })
	if i >= 0 {
		rule := c.Images[i]
		seen[rule.Name] = true
		if rule.NewName != "" {
			name = rule.NewName
		}
		switch {
		case rule.Digest != "":
			suffix = "@" + rule.Digest
		case rule.NewTag != "":
			suffix = ":" + rule.NewTag
		}
		if rule.NewName != "" {
			return name + suffix
		}
	}
	if c.Registry != "" {
		name = strings.TrimSuffix(c.Registry, "/") + "/" + withoutHost(name)
	}
	return name + suffix
}

// splitImage cuts a tag, a digest or both off an image.
func splitImage(image string) (name, suffix string) {
	end := len(image)
	if i := strings.IndexByte(image, '@'); i >= 0 {
		end = i
	}
	if i := strings.LastIndexByte(image[:end], ':'); i > strings.LastIndexByte(image[:end], '/') {
		end = i
	}
	return image[:end], image[end:]
}

// withoutHost is an image's path in its registry.
func withoutHost(name string) string {
	host, rest, ok := strings.Cut(name, "/")
	if ok && (strings.ContainsAny(host, ".:") || host == "localhost") {
		return rest
	}
	return name
}

// eachContainer visits the containers anywhere in an object: custom resources have pod templates too.
func eachContainer(value any, visit func(map[string]any)) {
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			if list, ok := inner.([]any); ok && (key == "containers" || key == "initContainers" || key == "ephemeralContainers") {
				for _, item := range list {
					if container, ok := item.(map[string]any); ok {
						visit(container)
					}
				}
			}
			eachContainer(inner, visit)
		}
	case []any:
		for _, inner := range value {
			eachContainer(inner, visit)
		}
	}
}
