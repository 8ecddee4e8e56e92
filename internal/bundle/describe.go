package bundle

import (
	"fmt"
	"strings"
)

// Parameter is what a person is told of one parameter.
type Parameter struct {
	Name        string
	Description string
	// Type is that of the JSON schema.
	Type string
	// Limits words what values are allowed beyond the type; empty for all.
	Limits string
	// Default is the text of parameters.yaml; empty where it is not known.
	Default string
}

// Describe lists the parameters of a schema, sorted by name, without defaults.
func (s Schema) Describe() []Parameter {
	properties := s.properties()
	var parameters []Parameter
	for _, name := range s.Names() {
		property := properties[name]
		description, _ := property["description"].(string)
		kind, _ := property["type"].(string)
		parameters = append(parameters, Parameter{Name: name, Description: description, Type: kind, Limits: limits(property)})
	}
	return parameters
}

func limits(property map[string]any) string {
	var parts []string
	if values, ok := property["enum"].([]any); ok {
		var names []string
		for _, value := range values {
			names = append(names, text(value))
		}
		parts = append(parts, strings.Join(names, "|"))
	}
	minimum, hasMinimum := property["minimum"]
	maximum, hasMaximum := property["maximum"]
	switch {
	case hasMinimum && hasMaximum:
		parts = append(parts, fmt.Sprintf("%v to %v", minimum, maximum))
	case hasMinimum:
		parts = append(parts, fmt.Sprintf("at least %v", minimum))
	case hasMaximum:
		parts = append(parts, fmt.Sprintf("at most %v", maximum))
	}
	if pattern, ok := property["pattern"].(string); ok {
		parts = append(parts, pattern)
	}
	return strings.Join(parts, ", ")
}

// ParametersOf describes the parameters of a version with their defaults.
func (a *Addon) ParametersOf(v *Version) ([]Parameter, error) {
	defaults, err := a.defaults(v)
	if err != nil {
		return nil, err
	}
	parameters := a.schemaOf(v).Describe()
	for i := range parameters {
		parameters[i].Default = defaults.data[parameters[i].Name]
	}
	return parameters, nil
}

// ParameterNames lists the parameters of a version, sorted.
func (a *Addon) ParameterNames(v *Version) []string { return a.schemaOf(v).Names() }

// FactsOf lists the facts of the cluster that a version uses.
func (a *Addon) FactsOf(v *Version) ([]string, error) {
	defaults, err := a.defaults(v)
	if err != nil {
		return nil, err
	}
	var facts []string
	for _, name := range defaults.names() {
		if isFact(name) {
			facts = append(facts, name)
		}
	}
	return facts, nil
}
