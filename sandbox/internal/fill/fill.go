package fill

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Lookup returns the value of a variable and whether it is set; os.LookupEnv is one.
type Lookup func(name string) (string, bool)

// MissingError lists the variables that have neither a value nor a default.
type MissingError struct {
	Names []string
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("no value for %s: set each in the environment or as NAME=value", strings.Join(e.Names, ", "))
}

// A default may hold anything but a closing brace.
var variable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)(?:(:?[=-])([^}]*))?\}`)

// Fill returns the template with its variables replaced. The error is a
// *MissingError.
func Fill(template string, lookup Lookup) (string, error) {
	var missing []string
	filled := variable.ReplaceAllStringFunc(template, func(match string) string {
		part := variable.FindStringSubmatch(match)
		name, operator, fallback := part[1], part[2], part[3]
		value, set := lookup(name)
		switch {
		// As in a shell: with a colon an empty value counts as unset.
		case set && (value != "" || !strings.HasPrefix(operator, ":")):
			return value
		case operator != "":
			return fallback
		}
		missing = append(missing, name)
		return match
	})
	if len(missing) > 0 {
		slices.Sort(missing)
		return "", &MissingError{Names: slices.Compact(missing)}
	}
	return filled, nil
}
