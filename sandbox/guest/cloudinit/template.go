package cloudinit

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// templateHeader is the first line that makes user data a jinja template.
const templateHeader = "## template: jinja"

// missingPrefix is what cloud-init leaves in place of a variable that it does
// not have.
const missingPrefix = "CI_MISSING_JINJA_VAR/"

// Render replaces the jinja variables of user data that asks for it by its first
// line; other user data comes back as it is. missing names variables that do not
// exist: like cloud-init, Render puts a marker in their place and goes on.
//
// Expressions, the filters default, lower, upper and trim, comments and raw
// blocks are understood. Control statements are refused: no bootstrap provider
// writes them.
func Render(userdata []byte, vars map[string]any) (rendered []byte, missing []string, err error) {
	first, rest, _ := bytes.Cut(userdata, []byte("\n"))
	if !strings.EqualFold(string(bytes.TrimSpace(first)), templateHeader) {
		return userdata, nil, nil
	}
	t := template{in: string(rest), line: 2, vars: vars}
	if err := t.run(); err != nil {
		return nil, nil, fmt.Errorf("render jinja template: line %d: %w", t.line, err)
	}
	return []byte(t.out.String()), t.missing, nil
}

type template struct {
	in      string
	line    int
	vars    map[string]any
	out     strings.Builder
	missing []string
}

func (t *template) run() error {
	for {
		at := strings.IndexByte(t.in, '{')
		if at < 0 || at+1 >= len(t.in) {
			t.out.WriteString(t.in)
			return nil
		}
		t.out.WriteString(t.take(at))
		var err error
		switch t.in[:2] {
		case "{{":
			err = t.expression()
		case "{%":
			err = t.statement()
		case "{#":
			_, err = t.until("{#", "#}")
		default:
			t.out.WriteString(t.take(1))
		}
		if err != nil {
			return err
		}
	}
}

// take consumes n bytes of the input.
func (t *template) take(n int) string {
	taken := t.in[:n]
	t.in = t.in[n:]
	t.line += strings.Count(taken, "\n")
	return taken
}

// until consumes a tag and returns what is between its ends.
func (t *template) until(open, end string) (string, error) {
	at := strings.Index(t.in[len(open):], end)
	if at < 0 {
		return "", fmt.Errorf("%q has no %q", open, end)
	}
	body := t.take(len(open) + at + len(end))
	return body[len(open) : len(open)+at], nil
}

func (t *template) expression() error {
	body, err := t.until("{{", "}}")
	if err != nil {
		return err
	}
	value, err := t.evaluate(strings.Trim(body, "-+ \t\n"))
	if err != nil {
		return err
	}
	t.out.WriteString(value)
	return nil
}

func (t *template) statement() error {
	body, err := t.until("{%", "%}")
	if err != nil {
		return err
	}
	if name := strings.Trim(body, "-+ \t\n"); name != "raw" {
		return fmt.Errorf("statement %q is not supported by this sandbox", name)
	}
	for from := 0; ; {
		at := strings.Index(t.in[from:], "{%")
		if at < 0 {
			return fmt.Errorf("raw block has no endraw")
		}
		at += from
		end := strings.Index(t.in[at:], "%}")
		if end < 0 {
			return fmt.Errorf("%q has no %q", "{%", "%}")
		}
		if strings.Trim(t.in[at+2:at+end], "-+ \t\n") == "endraw" {
			t.out.WriteString(t.take(at))
			t.take(end + 2)
			return nil
		}
		from = at + end + 2
	}
}

// evaluate returns the text of an expression: a variable's path or a quoted
// string, then filters.
func (t *template) evaluate(expression string) (string, error) {
	parts := splitOutsideQuotes(expression, '|')
	value, name, err := t.lookup(strings.TrimSpace(parts[0]))
	if err != nil {
		return "", err
	}
	for _, filter := range parts[1:] {
		if value, name, err = applyFilter(strings.TrimSpace(filter), value, name); err != nil {
			return "", err
		}
	}
	if name != "" {
		if !slices.Contains(t.missing, name) {
			t.missing = append(t.missing, name)
		}
		return missingPrefix + name, nil
	}
	return asPython(value), nil
}

// lookup follows a path such as ds.meta_data["local-hostname"]. missing is the
// last name when the variable does not exist.
func (t *template) lookup(path string) (value any, missing string, err error) {
	if quoted, ok := unquote(path); ok {
		return quoted, "", nil
	}
	names, err := pathNames(path)
	if err != nil {
		return nil, "", err
	}
	value = t.vars
	for n, name := range names {
		fields, ok := value.(map[string]any)
		if ok {
			value, ok = fields[name]
		}
		if ok {
			continue
		}
		if n < len(names)-1 {
			return nil, "", fmt.Errorf("%q is undefined", strings.Join(names[:n+1], "."))
		}
		return nil, name, nil
	}
	return value, "", nil
}

func pathNames(path string) ([]string, error) {
	var names []string
	rest := path
	for rest != "" {
		rest = strings.TrimPrefix(rest, ".")
		if strings.HasPrefix(rest, "[") {
			end := strings.IndexByte(rest, ']')
			if end < 0 {
				return nil, fmt.Errorf("expression %q: missing ]", path)
			}
			name, ok := unquote(strings.TrimSpace(rest[1:end]))
			if !ok {
				return nil, fmt.Errorf("expression %q is not supported by this sandbox", path)
			}
			names, rest = append(names, name), rest[end+1:]
			continue
		}
		end := strings.IndexAny(rest, ".[")
		if end < 0 {
			end = len(rest)
		}
		name := rest[:end]
		if !identifier(name) {
			return nil, fmt.Errorf("expression %q is not supported by this sandbox", path)
		}
		names, rest = append(names, name), rest[end:]
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("an expression is empty")
	}
	return names, nil
}

func applyFilter(filter string, value any, missing string) (any, string, error) {
	name, argument, _ := strings.Cut(strings.TrimSuffix(filter, ")"), "(")
	switch name {
	case "default", "d":
		if missing == "" {
			return value, "", nil
		}
		fallback, ok := unquote(strings.TrimSpace(argument))
		if !ok {
			return nil, "", fmt.Errorf("filter %q needs one quoted argument", filter)
		}
		return fallback, "", nil
	case "lower":
		return strings.ToLower(asPython(value)), missing, nil
	case "upper":
		return strings.ToUpper(asPython(value)), missing, nil
	case "trim":
		return strings.TrimSpace(asPython(value)), missing, nil
	default:
		return nil, "", fmt.Errorf("filter %q is not supported by this sandbox", name)
	}
}

func identifier(name string) bool {
	for n, c := range name {
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (n == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

func unquote(s string) (string, bool) {
	if len(s) < 2 || s[0] != s[len(s)-1] || s[0] != '"' && s[0] != '\'' {
		return "", false
	}
	return s[1 : len(s)-1], true
}

func splitOutsideQuotes(s string, at byte) []string {
	var parts []string
	var quote byte
	from := 0
	for n := 0; n < len(s); n++ {
		switch c := s[n]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == at:
			parts, from = append(parts, s[from:n]), n+1
		}
	}
	return append(parts, s[from:])
}

// asPython writes a value as Python's str does, which is what jinja prints.
func asPython(value any) string {
	switch value := value.(type) {
	case nil:
		return "None"
	case bool:
		if value {
			return "True"
		}
		return "False"
	default:
		return fmt.Sprint(value)
	}
}
