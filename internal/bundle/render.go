package bundle

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sync"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// krustyMutex guards kustomize, which keeps its OpenAPI schema in global variables.
var krustyMutex sync.Mutex

// Input is all that a render depends on.
type Input struct {
	Addon   *Addon
	Version *Version
	Facts   Facts
	// Values are the user's parameters: text, or typed as YAML reads them.
	Values map[string]any
	// Custom is what the user changes of the objects.
	Custom Customization
	// Sources are the contents of the version's sources by URL, as Fetch returns them.
	Sources map[string][]byte
}

// Check tells what is wrong with the parameters, or which fact is missing,
// without the sources.
func (in Input) Check() error {
	_, err := in.Addon.parameters(in.Version, in.Facts, in.Values)
	return err
}

// Render builds the objects of a version with kustomize, in memory: nothing is
// read but the add-on's folder and the given sources. The objects come in the
// order of the kustomization.
func Render(in Input) ([]*unstructured.Unstructured, error) {
	parameters, err := in.Addon.parameters(in.Version, in.Facts, in.Values)
	if err != nil {
		return nil, err
	}
	memory, err := in.fileSystem(parameters)
	if err != nil {
		return nil, err
	}
	objects, err := in.build(memory)
	if err != nil {
		return nil, fmt.Errorf("render %s %s: %w", in.Addon.Name, in.Version.Version, err)
	}
	return objects, in.Custom.rewriteImages(objects)
}

// fileSystem copies the add-on's folder into memory, with the parameters in
// parameters.yaml and each source's URL replaced by a file with its content.
func (in Input) fileSystem(parameters map[string]string) (filesys.FileSystem, error) {
	memory := filesys.MakeFsInMemory()
	err := fs.WalkDir(in.Addon.files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if !entry.Type().IsRegular() {
			return &FileError{File: in.Addon.Name + "/" + name, Err: errors.New("is neither a file nor a folder")}
		}
		content, err := fs.ReadFile(in.Addon.files, name)
		if err != nil {
			return err
		}
		return memory.WriteFile("/"+name, content)
	})
	if err != nil {
		return nil, fmt.Errorf("read add-on %s: %w", in.Addon.Name, err)
	}
	if err := walkKustomizations(in.Addon, in.Version, func(folder string, root *yaml.Node) error {
		return in.placeSources(memory, folder, root)
	}); err != nil {
		return nil, err
	}
	content, err := yaml.Marshal(newParameterMap(parameters))
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", parametersFile, err)
	}
	return memory, memory.WriteFile(path.Join("/", in.Version.Version, parametersFile), content)
}

// placeSources writes the sources that a kustomization names beside it, and
// names these files in it instead.
func (in Input) placeSources(memory filesys.FileSystem, folder string, document *yaml.Node) error {
	list, _ := child(document.Content[0], "resources")
	if list == nil {
		return nil
	}
	placed := false
	for _, item := range list.Content {
		content, ok := in.Sources[item.Value]
		if !ok {
			continue
		}
		name := "source-" + digest(content) + ".yaml"
		if err := memory.WriteFile(path.Join("/", folder, name), content); err != nil {
			return fmt.Errorf("place %s: %w", item.Value, err)
		}
		item.SetString(name)
		placed = true
	}
	if !placed {
		return nil
	}
	content, err := yaml.Marshal(document)
	if err != nil {
		return fmt.Errorf("write %s: %w", kustomizationFile, err)
	}
	return memory.WriteFile(path.Join("/", folder, kustomizationFile), content)
}

// build runs kustomize on the version, and on the patches on top of it.
func (in Input) build(memory filesys.FileSystem) ([]*unstructured.Unstructured, error) {
	krustyMutex.Lock()
	defer krustyMutex.Unlock()
	// The default options: no plugins, no Helm, nothing read above a kustomization's folder.
	kustomizer := krusty.MakeKustomizer(krusty.MakeDefaultOptions())
	built, err := kustomizer.Run(memory, "/"+in.Version.Version)
	if err != nil {
		return nil, err
	}
	if len(in.Custom.Patches) > 0 {
		if err := in.Custom.checkTargets(built); err != nil {
			return nil, err
		}
		if err := in.Custom.overlay(memory, in.Version.Version); err != nil {
			return nil, err
		}
		if built, err = kustomizer.Run(memory, overlayFolder); err != nil {
			return nil, fmt.Errorf("lay the patches over it: %w", err)
		}
	}
	return unstructuredOf(built)
}

func unstructuredOf(built resmap.ResMap) ([]*unstructured.Unstructured, error) {
	objects := make([]*unstructured.Unstructured, 0, built.Size())
	for _, resource := range built.Resources() {
		content, err := resource.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", resource.CurId(), err)
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(content); err != nil {
			return nil, fmt.Errorf("%s: %w", resource.CurId(), err)
		}
		objects = append(objects, object)
	}
	return objects, nil
}
