package bundle

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

const kustomizationFile = "kustomization.yaml"

// How a field of a kustomization names files.
const (
	plain     = iota // it names none
	resources        // a list of files, folders of the add-on, or sources
	folders          // a list of folders of the add-on
	files            // a list of files
	patches          // a list of objects that may have a path
	fileArgs         // generators: files and envs, each "name=path" or "path"
)

// kustomizationFields are the fields that a bundle's kustomization may have.
// The others run programs, inflate Helm charts, or are deprecated forms of these.
var kustomizationFields = map[string]int{
	"apiVersion": plain, "kind": plain, "metadata": plain,
	"namespace": plain, "namePrefix": plain, "nameSuffix": plain,
	"labels": plain, "commonAnnotations": plain, "images": plain, "replicas": plain,
	"generatorOptions": plain, "sortOptions": plain,
	"resources": resources, "components": folders,
	"patches": patches, "replacements": patches,
	"configMapGenerator": fileArgs, "secretGenerator": fileArgs,
	"configurations": files, "crds": files,
}

// kustomization walks the kustomizations that one version is made of.
type kustomization struct {
	addon   *Addon
	version *Version
	// visit is called with each kustomization's folder and parsed file.
	visit   func(folder string, root *yaml.Node) error
	visited []string
}

// checkKustomization refuses a version whose kustomizations read anything but
// files of the add-on and sources with a digest, or run anything.
func checkKustomization(addon *Addon, v *Version) error {
	return walkKustomizations(addon, v, func(string, *yaml.Node) error { return nil })
}

// walkKustomizations checks and visits the kustomization of a version and those it builds on.
func walkKustomizations(addon *Addon, v *Version, visit func(folder string, root *yaml.Node) error) error {
	k := &kustomization{addon: addon, version: v, visit: visit}
	return k.walk(v.Version)
}

func (k *kustomization) walk(folder string) error {
	if slices.Contains(k.visited, folder) {
		return nil
	}
	k.visited = append(k.visited, folder)
	file := path.Join(k.addon.Name, folder, kustomizationFile)
	content, err := fs.ReadFile(k.addon.files, path.Join(folder, kustomizationFile))
	if err != nil {
		return &FileError{File: file, Err: errors.New("the file is missing")}
	}
	var document yaml.Node
	if err := yaml.Unmarshal(content, &document); err != nil {
		return yamlError(file, err)
	}
	if len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode {
		return &FileError{File: file, Line: 1, Err: errors.New("want a kustomization")}
	}
	root := document.Content[0]
	if alias := findAlias(root); alias != nil {
		return &FileError{File: file, Line: alias.Line, Err: errors.New("a YAML alias hides what is read: write it out")}
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		kind, ok := kustomizationFields[key.Value]
		if !ok {
			return &FileError{File: file, Line: key.Line, Err: fmt.Errorf("field %q is not allowed in a bundle", key.Value)}
		}
		for _, item := range value.Content {
			if err := k.reference(folder, kind, item); err != nil {
				return located(file, item.Line, err)
			}
		}
	}
	return k.visit(folder, &document)
}

// located gives an error its place, unless it names that of a file further in.
func located(file string, line int, err error) error {
	var inner *FileError
	if errors.As(err, &inner) {
		return err
	}
	return &FileError{File: file, Line: line, Err: err}
}

func findAlias(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		return node
	}
	for _, inner := range node.Content {
		if alias := findAlias(inner); alias != nil {
			return alias
		}
	}
	return nil
}

// pathFields are the fields of patches, replacements and generators that name files.
var pathFields = []string{"path", "files", "envs", "env"}

// checkCase refuses a field such as "Path", which kustomize reads as "path",
// since Go's JSON decoder does, and which the checks here would pass over.
func checkCase(item *yaml.Node) error {
	for i := 0; item.Kind == yaml.MappingNode && i < len(item.Content); i += 2 {
		key := item.Content[i].Value
		for _, field := range pathFields {
			if key != field && strings.EqualFold(key, field) {
				return fmt.Errorf("field %q: write it in lower case", key)
			}
		}
	}
	return nil
}

// reference checks what one item of a field of a kustomization reads.
func (k *kustomization) reference(folder string, kind int, item *yaml.Node) error {
	if err := checkCase(item); err != nil {
		return err
	}
	switch kind {
	case resources:
		return k.resource(folder, item.Value)
	case folders:
		return k.folder(folder, item.Value)
	case files:
		return k.localFile(folder, item.Value)
	case patches:
		if at, _ := child(item, "path"); at != nil {
			return k.localFile(folder, at.Value)
		}
	case fileArgs:
		return k.generator(folder, item)
	}
	return nil
}

func (k *kustomization) resource(folder, name string) error {
	if strings.Contains(name, "://") {
		for _, s := range k.version.Sources {
			if s.URL == name {
				return nil
			}
		}
		return fmt.Errorf("resource %s is not among the sources of version %s in addon.yaml: name it there with its sha256", name, k.version.Version)
	}
	if info, err := k.stat(folder, name); err == nil && info.IsDir() {
		return k.walk(path.Join(folder, name))
	}
	return k.localFile(folder, name)
}

func (k *kustomization) folder(folder, name string) error {
	info, err := k.stat(folder, name)
	if err != nil || !info.IsDir() {
		return fmt.Errorf("%q is not a folder of the add-on", name)
	}
	return k.walk(path.Join(folder, name))
}

func (k *kustomization) localFile(folder, name string) error {
	info, err := k.stat(folder, name)
	if err != nil || !info.Mode().IsRegular() {
		return fmt.Errorf("%q is not a file of the add-on", name)
	}
	return nil
}

// generator checks the files of one entry of a ConfigMap or Secret generator.
func (k *kustomization) generator(folder string, entry *yaml.Node) error {
	for _, field := range []string{"files", "envs"} {
		list, _ := child(entry, field)
		if list == nil {
			continue
		}
		for _, item := range list.Content {
			name := item.Value
			if _, after, ok := strings.Cut(name, "="); ok {
				name = after
			}
			if err := k.localFile(folder, name); err != nil {
				return err
			}
		}
	}
	if env, _ := child(entry, "env"); env != nil {
		return k.localFile(folder, env.Value)
	}
	return nil
}

// stat looks a path up without ever leaving the add-on's folder.
func (k *kustomization) stat(folder, name string) (fs.FileInfo, error) {
	joined := path.Join(folder, name)
	if path.IsAbs(name) || !isLocalPath(joined) {
		return nil, fs.ErrInvalid
	}
	return fs.Stat(k.addon.files, joined)
}

func isNotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// strictYAML decodes one document; an unknown field is an error.
func strictYAML(content []byte, into any) error {
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	decoder.KnownFields(true)
	return decoder.Decode(into)
}
