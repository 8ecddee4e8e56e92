package bundle

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"
)

const (
	parametersFile = "parameters.yaml"
	// parametersName is the ConfigMap from which a kustomization takes its parameters.
	parametersName = "addon-parameters"
	// localConfig marks what kustomize reads but does not emit.
	localConfig = "config.kubernetes.io/local-config"
)

// parameterFile is a parameters.yaml: the ConfigMap addon-parameters with the
// defaults, and where each stands.
type parameterFile struct {
	data map[string]string
	root yaml.Node
}

// configMap is as much of a ConfigMap as parameters.yaml may hold.
type configMap struct {
	APIVersion string            `yaml:"apiVersion"`
	Kind       string            `yaml:"kind"`
	Metadata   configMapMeta     `yaml:"metadata"`
	Data       map[string]string `yaml:"data,omitempty"`
}

type configMapMeta struct {
	Name        string            `yaml:"name"`
	Annotations map[string]string `yaml:"annotations"`
}

// newParameterMap is the ConfigMap that stands in for parameters.yaml when rendering.
func newParameterMap(data map[string]string) configMap {
	return configMap{
		APIVersion: "v1", Kind: "ConfigMap",
		Metadata: configMapMeta{Name: parametersName, Annotations: map[string]string{localConfig: "true"}},
		Data:     data,
	}
}

// defaults reads the parameters.yaml of a version; a version without one has no parameters.
func (a *Addon) defaults(v *Version) (*parameterFile, error) {
	file := a.fileName(v, parametersFile)
	content, err := readIfThere(a.files, v.Version+"/"+parametersFile)
	if err != nil {
		return nil, &FileError{File: file, Err: err}
	}
	if content == nil {
		return &parameterFile{}, nil
	}
	parameters := &parameterFile{}
	if err := yaml.Unmarshal(content, &parameters.root); err != nil {
		return nil, yamlError(file, err)
	}
	var object configMap
	if err := strictYAML(content, &object); err != nil {
		return nil, yamlError(file, err)
	}
	if object.APIVersion != "v1" || object.Kind != "ConfigMap" || object.Metadata.Name != parametersName {
		return nil, &FileError{File: file, Line: 1, Err: fmt.Errorf("want the ConfigMap %s of v1", parametersName)}
	}
	if object.Metadata.Annotations[localConfig] != "true" {
		return nil, &FileError{File: file, Line: lineOf(&parameters.root, "metadata"), Err: fmt.Errorf(
			"the annotation %s: \"true\" is missing: without it the parameters would be applied to the cluster", localConfig)}
	}
	parameters.data = object.Data
	return parameters, nil
}

func (p *parameterFile) names() []string { return slices.Sorted(maps.Keys(p.data)) }

// fail is a mistake at a parameter's line.
func (p *parameterFile) fail(file, name string, err error) error {
	at := []any{"data"}
	if name != "" {
		at = append(at, name)
	}
	return &FileError{File: file, Line: lineOf(&p.root, at...), Err: err}
}

// parameters merges the defaults of a version, the facts that it uses and the
// user's values, which are checked against the schema.
func (a *Addon) parameters(v *Version, facts Facts, values map[string]any) (map[string]string, error) {
	defaults, err := a.defaults(v)
	if err != nil {
		return nil, err
	}
	schema := a.schemaOf(v)
	properties := schema.properties()
	checked := make(map[string]any, len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		property, ok := properties[name]
		switch {
		case isFact(name):
			return nil, fmt.Errorf("%s is a fact of the cluster, not a parameter of %s", name, a.Name)
		case !ok:
			return nil, &UnknownError{What: "parameter", Name: name, Of: a.Name + " " + v.Version, Known: schema.Names()}
		}
		if given, ok := values[name].(string); ok {
			checked[name] = typed(property, given)
		} else {
			checked[name] = values[name]
		}
	}
	if err := schema.validate(checked); err != nil {
		return nil, fmt.Errorf("%s %s: %w", a.Name, v.Version, err)
	}
	data := make(map[string]string, len(defaults.data))
	maps.Copy(data, defaults.data)
	known := facts.values()
	for _, name := range defaults.names() {
		if !isFact(name) {
			continue
		}
		if known[name] == "" {
			return nil, &UnknownFactError{Addon: a.Name, Fact: name}
		}
		data[name] = known[name]
	}
	for name, value := range checked {
		data[name] = text(value)
	}
	return data, nil
}

// typed reads text as the type that a property has. What does not parse stays
// text, for the schema to refuse.
func typed(property map[string]any, given string) any {
	switch property["type"] {
	case "integer":
		if n, err := strconv.ParseInt(given, 10, 64); err == nil {
			return n
		}
	case "number":
		if _, err := strconv.ParseFloat(given, 64); err == nil {
			return json.Number(given)
		}
	case "boolean":
		if b, err := strconv.ParseBool(given); err == nil {
			return b
		}
	}
	return given
}

// text is a scalar as a ConfigMap holds it.
func text(value any) string {
	if s, ok := value.(string); ok {
		return s
	}
	return fmt.Sprint(value)
}

// readIfThere returns nil for a file that does not exist.
func readIfThere(files fs.FS, name string) ([]byte, error) {
	content, err := fs.ReadFile(files, name)
	if err != nil && isNotExist(err) {
		return nil, nil
	}
	return content, err
}
