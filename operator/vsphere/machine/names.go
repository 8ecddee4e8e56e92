package machine

import (
	"fmt"
	"strings"
	"text/template"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/millwright-dev/millwright/internal/vcenter"
)

// maxName is the length of a host name's label (RFC 1123), which the name of a virtual machine becomes in the guest.
const maxName = 63

// vmName makes the name of a virtual machine from the naming strategy's template, which may be empty.
func vmName(strategy, machineName string) (string, error) {
	name := machineName
	if strategy != "" {
		funcs := template.FuncMap{
			"trimSuffix": func(suffix, s string) string { return strings.TrimSuffix(s, suffix) },
			"trunc":      trunc,
		}
		parsed, err := template.New("name").Funcs(funcs).Option("missingkey=error").Parse(strategy)
		if err != nil {
			return "", invalidName("%v", err)
		}
		var out strings.Builder
		data := map[string]any{"machine": map[string]any{"name": machineName}}
		if err := parsed.Execute(&out, data); err != nil {
			return "", invalidName("%v", err)
		}
		name = out.String()
	}
	if len(name) > maxName {
		name = strings.TrimRight(name[:maxName], "-.")
	}
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return "", invalidName("it makes the name %q: %s", name, strings.Join(problems, ", "))
	}
	return name, nil
}

// trunc keeps the first n characters, or with a negative n the last.
func trunc(n int, s string) string {
	switch {
	case n >= 0 && n < len(s):
		return s[:n]
	case n < 0 && -n < len(s):
		return s[len(s)+n:]
	}
	return s
}

func invalidName(format string, args ...any) error {
	return &vcenter.InvalidError{Field: "namingStrategy.template", Message: fmt.Sprintf(format, args...)}
}
