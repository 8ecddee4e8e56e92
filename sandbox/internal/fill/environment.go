package fill

import (
	"fmt"
	"sort"
	"strings"
)

// Environment renders variables as a file that a POSIX shell can source, in
// the order of their names.
func Environment(vars map[string]string) string {
	names := make([]string, 0, len(vars))
	for name := range vars {
		names = append(names, name)
	}
	sort.Strings(names)
	var b strings.Builder
	for _, name := range names {
		fmt.Fprintf(&b, "export %s='%s'\n", name, strings.ReplaceAll(vars[name], "'", `'\''`))
	}
	return b.String()
}

// ParseEnvironment reads back what Environment wrote; plain NAME=value lines
// and comments are taken too. Values are not expanded.
func ParseEnvironment(text string) (map[string]string, error) {
	vars := map[string]string{}
	for n, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, ok := strings.Cut(strings.TrimPrefix(line, "export "), "=")
		if !ok || !variable.MatchString("${"+name+"}") {
			return nil, fmt.Errorf("line %d: want NAME=value, got %q", n+1, line)
		}
		if len(value) >= 2 && value[0] == '\'' && value[len(value)-1] == '\'' {
			value = strings.ReplaceAll(value[1:len(value)-1], `'\''`, "'")
		}
		vars[name] = value
	}
	return vars, nil
}
