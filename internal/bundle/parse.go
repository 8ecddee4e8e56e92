package bundle

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/Masterminds/semver/v3"
	"go.yaml.in/yaml/v3"
)

var (
	// RFC 1123 label, as Kubernetes names are: an add-on's name becomes part of object names.
	nameFormat   = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)
	sha256Format = regexp.MustCompile(`^[0-9a-f]{64}$`)
	// yaml.v3 reports mistakes as "line 3: …".
	yamlLine = regexp.MustCompile(`^(?:yaml: )?line (\d+): (.*)$`)
	// Of these, the mistakes in structure, it counts the lines from zero.
	yamlStructure = regexp.MustCompile(`^did not find expected (?:key|node content|'-' indicator|',' or '[\]}]'|<document start>)`)
)

// parseAddon reads addon.yaml strictly: an unknown field, a wrong type or a
// value out of its range is a *FileError with the line.
func parseAddon(file string, content []byte) (*Addon, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	decoder.KnownFields(true)
	addon := &Addon{}
	if err := decoder.Decode(addon); err != nil {
		return nil, yamlError(file, err)
	}
	if err := decoder.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return nil, &FileError{File: file, Err: errors.New("holds more than one YAML document")}
	}
	var root yaml.Node
	if err := yaml.Unmarshal(content, &root); err != nil {
		return nil, yamlError(file, err)
	}
	check := checker{file: file, root: &root}
	check.addon(addon)
	if check.err != nil {
		return nil, check.err
	}
	slices.SortStableFunc(addon.Versions, func(a, b Version) int { return b.semver.Compare(a.semver) })
	return addon, nil
}

// yamlError gives an error of the YAML parser the shape of a FileError.
func yamlError(file string, err error) error {
	text := err.Error()
	var typeErr *yaml.TypeError
	if errors.As(err, &typeErr) && len(typeErr.Errors) > 0 {
		text = typeErr.Errors[0]
	}
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		if line, err := strconv.Atoi(m[1]); err == nil {
			if yamlStructure.MatchString(m[2]) {
				line++
			}
			return &FileError{File: file, Line: line, Err: errors.New(plainYAMLError(m[2]))}
		}
	}
	return &FileError{File: file, Err: errors.New(strings.TrimPrefix(text, "yaml: "))}
}

var unknownField = regexp.MustCompile(`^field (\S+) not found in type bundle\.(\w+)$`)

// plainYAMLError rewords what names a Go type, which the author of a bundle has never seen.
func plainYAMLError(text string) string {
	if m := unknownField.FindStringSubmatch(text); m != nil {
		return fmt.Sprintf("unknown field %q", m[1])
	}
	return text
}

// checker keeps the first mistake it is told of.
type checker struct {
	file string
	root *yaml.Node
	err  error
}

// fail notes a mistake at a place in the file given as keys and indexes from the root.
func (c *checker) fail(at []any, format string, args ...any) {
	if c.err == nil {
		c.err = &FileError{File: c.file, Line: lineOf(c.root, at...), Err: fmt.Errorf(format, args...)}
	}
}

func (c *checker) addon(a *Addon) {
	if a.APIVersion != APIVersion || a.Kind != Kind {
		c.fail([]any{"apiVersion"}, "apiVersion and kind are %q and %q, want %q and %q", a.APIVersion, a.Kind, APIVersion, Kind)
	}
	if !nameFormat.MatchString(a.Name) {
		c.fail([]any{"name"}, "name %q: want lower-case letters, digits and '-'", a.Name)
	}
	if a.Description == "" {
		c.fail([]any{"description"}, "description is missing")
	}
	if !slices.Contains(Categories, a.Category) {
		c.fail([]any{"category"}, "category %q: want one of %s", a.Category, strings.Join(Categories, ", "))
	}
	if len(a.Versions) == 0 {
		c.fail([]any{"versions"}, "versions: want at least one")
	}
	if err := a.Parameters.check(); err != nil {
		c.fail([]any{"parameters"}, "parameters: %w", err)
	}
	for i, d := range a.Derived {
		if d.Namespace == "" || d.Name == "" || d.Key == "" {
			c.fail([]any{"derived", i}, "derived: want the namespace and the name of a ConfigMap, and a key of its data")
		}
		if !slices.Contains(Derivations, d.By) {
			c.fail([]any{"derived", i, "by"}, "derived by %q: want one of %s", d.By, strings.Join(Derivations, ", "))
		}
	}
	seen := map[string]bool{}
	for i := range a.Versions {
		v := &a.Versions[i]
		c.version(v, "versions", i)
		if seen[v.Version] {
			c.fail([]any{"versions", i, "version"}, "version %q is there twice", v.Version)
		}
		seen[v.Version] = true
	}
}

func (c *checker) version(v *Version, at ...any) {
	field := func(keys ...any) []any { return append(slices.Clone(at), keys...) }
	var err error
	if v.semver, err = semver.NewVersion(v.Version); err != nil {
		c.fail(field("version"), "version %q is not a semantic version", v.Version)
	}
	if _, err := semver.NewConstraint(v.Kubernetes); err != nil {
		c.fail(field("kubernetes"), "kubernetes %q is not a range of versions such as \">=1.34 <1.37\"", v.Kubernetes)
	}
	if v.UpgradesFrom != "" {
		if _, err := semver.NewConstraint(v.UpgradesFrom); err != nil {
			c.fail(field("upgradesFrom"), "upgradesFrom %q is not a range of versions such as \">=3.31 <3.33\"", v.UpgradesFrom)
		}
	}
	if !slices.Contains(Phases, v.Phase) {
		c.fail(field("phase"), "phase %q: want one of %s", v.Phase, strings.Join(Phases, ", "))
	}
	for name, refs := range map[string][]ObjectRef{"retain": v.Retain, "moved": v.Moved, "recreate": v.Recreate} {
		for i, ref := range refs {
			if ref.Kind == "" {
				c.fail(field(name, i), "%s: kind is missing", name)
			}
		}
	}
	for i := range v.Health {
		if v.Health[i].Kind == "" {
			c.fail(field("health", i), "health: kind is missing")
		}
		if err := v.Health[i].compile(); err != nil {
			c.fail(field("health", i, "cel"), "health: %w", err)
		}
	}
	if err := v.Parameters.check(); err != nil {
		c.fail(field("parameters"), "parameters: %w", err)
	}
	seen := map[string]bool{}
	for i, s := range v.Sources {
		c.source(s, field("sources", i)...)
		if seen[s.URL] {
			c.fail(field("sources", i, "url"), "source %s is there twice", s.URL)
		}
		seen[s.URL] = true
	}
}

func (c *checker) source(s Source, at ...any) {
	field := func(key string) []any { return append(slices.Clone(at), key) }
	if u, err := url.Parse(s.URL); err != nil || u.Scheme != "https" || u.Host == "" || u.RawQuery != "" {
		c.fail(field("url"), "source url %q: want https://host/path", s.URL)
	}
	if !sha256Format.MatchString(s.SHA256) {
		c.fail(field("sha256"), "source sha256 %q: want 64 hexadecimal digits", s.SHA256)
	}
	if s.Path != "" && !isLocalPath(s.Path) {
		c.fail(field("path"), "source path %q: want a relative path without '..'", s.Path)
	}
}

// isLocalPath tells whether a slash-separated path stays below where it starts.
func isLocalPath(p string) bool {
	clean := path.Clean(p)
	return !path.IsAbs(p) && clean != ".." && !strings.HasPrefix(clean, "../") && !strings.Contains(p, `\`)
}

// lineOf finds the line of a place given as keys and indexes from the root, or
// of the nearest thing around it that exists.
func lineOf(node *yaml.Node, at ...any) int {
	if node.Kind == yaml.DocumentNode {
		if len(node.Content) == 0 {
			return 0
		}
		node = node.Content[0]
	}
	line := node.Line
	for _, step := range at {
		if node.Kind == yaml.AliasNode {
			node = node.Alias
		}
		next, nextLine := child(node, step)
		if next == nil {
			return line
		}
		node, line = next, nextLine
	}
	return line
}

// child returns a node's value under a key or index, and the line it starts on.
func child(node *yaml.Node, step any) (*yaml.Node, int) {
	switch step := step.(type) {
	case string:
		for i := 0; node.Kind == yaml.MappingNode && i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == step {
				return node.Content[i+1], node.Content[i].Line
			}
		}
	case int:
		if node.Kind == yaml.SequenceNode && step < len(node.Content) {
			return node.Content[step], node.Content[step].Line
		}
	}
	return nil, 0
}
