package cloudinit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// MarshalYAML encodes value, by its JSON tags and in their order, as YAML that Jinja may rewrite:
// strings with Jinja in them become literal blocks, which know no escapes, so that quotes inside
// {{ ... }} reach Jinja unchanged. Lines are never folded.
func MarshalYAML(value any) ([]byte, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	node, err := decodeNode(decoder)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(node); err != nil {
		return nil, err
	}
	if err := encoder.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// decodeNode turns the next JSON value into a YAML node. Going through tokens instead of a map keeps
// the order of fields.
func decodeNode(decoder *json.Decoder) (*yaml.Node, error) {
	token, err := decoder.Token()
	if err != nil {
		if errors.Is(err, io.EOF) {
			return nil, io.ErrUnexpectedEOF
		}
		return nil, err
	}
	switch value := token.(type) {
	case json.Delim:
		return decodeCollection(decoder, value)
	case string:
		return stringNode(value), nil
	case json.Number:
		tag := "!!int"
		if strings.ContainsAny(value.String(), ".eE") {
			tag = "!!float"
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: value.String()}, nil
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: fmt.Sprint(value)}, nil
	default:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}, nil
	}
}

func decodeCollection(decoder *json.Decoder, open json.Delim) (*yaml.Node, error) {
	node := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	if open == '{' {
		node = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	}
	for decoder.More() {
		child, err := decodeNode(decoder)
		if err != nil {
			return nil, err
		}
		if isKey := node.Kind == yaml.MappingNode && len(node.Content)%2 == 0; isKey && child.Style == yaml.LiteralStyle {
			child.Style = yaml.DoubleQuotedStyle
		}
		node.Content = append(node.Content, child)
	}
	if _, err := decoder.Token(); err != nil {
		return nil, err
	}
	if len(node.Content) == 0 {
		node.Style = yaml.FlowStyle
	}
	return node, nil
}

func stringNode(value string) *yaml.Node {
	node := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value}
	switch {
	case strings.ContainsAny(value, "\r\u0085\u2028\u2029"), strings.HasPrefix(strings.TrimLeft(value, "\n"), "\t"):
		// A block would turn these line breaks into plain newlines, and cannot begin with a tab.
		node.Style = yaml.DoubleQuotedStyle
	case strings.ContainsAny(value, "\n") || hasJinja(value):
		node.Style = yaml.LiteralStyle
	case ambiguous(value):
		node.Style = yaml.DoubleQuotedStyle
	}
	return node
}

// ambiguous tells whether YAML 1.1, which cloud-init reads, might take a plain value for something
// else than a string: a number, a time, a bool.
func ambiguous(value string) bool {
	switch strings.ToLower(value) {
	case "", "y", "n", "yes", "no", "on", "off", "=", "<<":
		return true
	}
	return strings.ContainsRune("+-.0123456789", rune(value[0]))
}

func hasJinja(value string) bool {
	return strings.Contains(value, "{{") || strings.Contains(value, "{%") || strings.Contains(value, "{#")
}
