package bundle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// Schema is a JSON schema of parameters: an object whose properties are scalars,
// as the values of a ConfigMap are text.
type Schema map[string]any

// UnmarshalYAML decodes into plain maps, where the YAML library would repeat the named type all the way down.
func (s *Schema) UnmarshalYAML(node *yaml.Node) error {
	var plain map[string]any
	if err := node.Decode(&plain); err != nil {
		return err
	}
	*s = plain
	return nil
}

// scalarTypes are the JSON types a parameter can have.
var scalarTypes = []string{"string", "integer", "number", "boolean"}

// properties returns the schema of each parameter by its name.
func (s Schema) properties() map[string]map[string]any {
	all, _ := s["properties"].(map[string]any)
	properties := make(map[string]map[string]any, len(all))
	for name, property := range all {
		properties[name], _ = property.(map[string]any)
	}
	return properties
}

// Names lists the parameters, sorted.
func (s Schema) Names() []string {
	return slices.Sorted(maps.Keys(s.properties()))
}

// check tells what is wrong with the schema itself.
func (s Schema) check() error {
	if s == nil {
		return nil
	}
	if s["type"] != "object" {
		return fmt.Errorf("type is %v, want object", s["type"])
	}
	for name, property := range s.properties() {
		kind, _ := property["type"].(string)
		if !slices.Contains(scalarTypes, kind) {
			return fmt.Errorf("%s: type %q: want one of %s", name, kind, strings.Join(scalarTypes, ", "))
		}
		if isFact(name) {
			return fmt.Errorf("%s: names that start with %q are facts of the cluster", name, factPrefix)
		}
	}
	_, err := s.compile()
	return err
}

// noRemote refuses every $ref that leaves the schema.
type noRemote struct{}

func (noRemote) Load(url string) (any, error) {
	return nil, errors.New("a schema refers to nothing outside itself")
}

// schemaURL is only a name: nothing is loaded from it.
const schemaURL = "bundle:///parameters.json"

func (s Schema) compile() (*jsonschema.Schema, error) {
	document, err := jsonValue(map[string]any(s))
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(noRemote{})
	compiler.AssertFormat()
	if err := compiler.AddResource(schemaURL, document); err != nil {
		return nil, err
	}
	return compiler.Compile(schemaURL)
}

// jsonValue gives a value the Go types that the JSON schema library expects.
func jsonValue(value any) (any, error) {
	content, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return jsonschema.UnmarshalJSON(bytes.NewReader(content))
}

// validate checks typed values. Unknown names are the caller's to find: it can
// say what was meant.
func (s Schema) validate(values map[string]any) error {
	if s == nil {
		return nil
	}
	compiled, err := s.compile()
	if err != nil {
		return err
	}
	document, err := jsonValue(values)
	if err != nil {
		return err
	}
	var invalid *jsonschema.ValidationError
	if err := compiled.Validate(document); errors.As(err, &invalid) {
		return errors.New(firstCause(invalid))
	} else if err != nil {
		return err
	}
	return nil
}

// firstCause words the first mistake of a validation, without schema locations.
func firstCause(err *jsonschema.ValidationError) string {
	for len(err.Causes) > 0 {
		err = err.Causes[0]
	}
	text := err.ErrorKind.LocalizedString(message.NewPrinter(language.English))
	if len(err.InstanceLocation) == 0 {
		return text
	}
	return fmt.Sprintf("parameter %q: %s", strings.Join(err.InstanceLocation, "."), text)
}

// agreesWith checks that addon.yaml's schema and parameters.yaml's defaults
// speak of the same parameters, and that the defaults are valid.
func (s Schema) agreesWith(file string, defaults *parameterFile) error {
	properties := s.properties()
	values := map[string]any{}
	for _, name := range defaults.names() {
		if isFact(name) {
			if known := factNames(); !slices.Contains(known, name) {
				return defaults.fail(file, name, &UnknownError{What: "fact", Name: name, Known: known})
			}
			continue
		}
		property, ok := properties[name]
		if !ok {
			return defaults.fail(file, name, &UnknownError{What: "parameter", Name: name, Of: "the schema in addon.yaml", Known: s.Names()})
		}
		value := typed(property, defaults.data[name])
		if want, ok := property["default"]; ok && text(want) != text(value) {
			return defaults.fail(file, name, fmt.Errorf("%s is %q here, but its default in addon.yaml is %q", name, text(value), text(want)))
		}
		values[name] = value
	}
	for _, name := range s.Names() {
		if _, ok := defaults.data[name]; !ok {
			return defaults.fail(file, "", fmt.Errorf("parameter %q of addon.yaml has no default here", name))
		}
	}
	if err := s.validate(values); err != nil {
		return defaults.fail(file, "", err)
	}
	return nil
}
