package upgrade

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/Masterminds/semver/v3"
)

// Image is how a machine template names its machine image.
type Image struct {
	// Field is the path of the name in the template object.
	Field []string
	// Name is what is there.
	Name string

	name    *template.Template
	pattern *regexp.Regexp
}

// names is what a pattern may use.
type names struct{ Version, Number string }

// FindImage finds the name of the image in a machine template and how it follows the Kubernetes version.
//
// With a pattern, the field is the one that it fits, whatever version is in it, or, where it fits none because images are
// called otherwise from now on, the one that holds the version that the machines have; without a pattern, the one that holds the version
// that the machines have, and the pattern is what is around the version. With field, a path such as
// spec.template.spec.template, only that one is looked at. It is an error that tells what to set where none fits, or
// more than one does.
func FindImage(machineTemplate map[string]any, field, pattern string, have *semver.Version) (Image, error) {
	candidates := stringsIn(machineTemplate, field)
	if field != "" && len(candidates) != 1 {
		return Image{}, fmt.Errorf("images.field %q: the machine template has no text there", field)
	}
	if pattern != "" {
		return byPattern(candidates, field, pattern, have)
	}
	var found []Image
	for _, c := range candidates {
		if derived, ok := derive(c.value, have); ok {
			image, err := newImage(c, derived)
			if err != nil {
				return Image{}, err
			}
			found = append(found, image)
		}
	}
	return only(found, fmt.Sprintf("no name in it holds %s, the version of its machines", v(have)))
}

func byPattern(candidates []text, field, pattern string, have *semver.Version) (Image, error) {
	var found, versioned []Image
	for _, c := range candidates {
		image, err := newImage(c, pattern)
		if err != nil {
			return Image{}, err
		}
		// A field that is named is written whatever it holds now.
		if field != "" || image.pattern.MatchString(c.value) {
			found = append(found, image)
		} else if _, ok := derive(c.value, have); ok {
			versioned = append(versioned, image)
		}
	}
	if len(found) == 0 {
		found = versioned
	}
	return only(found, fmt.Sprintf("no name in it fits images.pattern %q or holds %s, the version of its machines", pattern, v(have)))
}

func only(found []Image, none string) (Image, error) {
	switch len(found) {
	case 0:
		return Image{}, fmt.Errorf("%s: say with images.field where the image's name is and with images.pattern what it is, or give images.templates", none)
	case 1:
		return found[0], nil
	}
	paths := make([]string, 0, len(found))
	for _, image := range found {
		paths = append(paths, strings.Join(image.Field, "."))
	}
	return Image{}, fmt.Errorf("the image's name may be any of %s: choose one with images.field", strings.Join(paths, ", "))
}

// derive makes a pattern of a name that holds a version: 1.37.2, or 1-37-2 and 1_37_2 where a dot may not be.
func derive(name string, have *semver.Version) (string, bool) {
	number := fmt.Sprintf("%d.%d.%d", have.Major(), have.Minor(), have.Patch())
	for _, separator := range []string{".", "-", "_"} {
		within := regexp.MustCompile(`(?:^|\D)(` + regexp.QuoteMeta(strings.ReplaceAll(number, ".", separator)) + `)(?:\D|$)`)
		at := within.FindStringSubmatchIndex(name)
		if at == nil {
			continue
		}
		action := "{{.Number}}"
		if separator != "." {
			action = fmt.Sprintf("{{.Dashed %q}}", separator)
		}
		return name[:at[2]] + action + name[at[3]:], true
	}
	return "", false
}

// Dashed writes the version with another separator.
func (n names) Dashed(separator string) string { return strings.ReplaceAll(n.Number, ".", separator) }

func newImage(c text, pattern string) (Image, error) {
	parsed, err := template.New("images.pattern").Option("missingkey=error").Parse(pattern)
	if err != nil {
		return Image{}, fmt.Errorf("images.pattern %q: %w", pattern, err)
	}
	image := Image{Field: c.path, Name: c.value, name: parsed}
	// A version that stands in no other text marks the places of the version in the name.
	mark := semver.New(98765, 43210, 56789, "", "")
	sample, err := image.render(mark)
	if err != nil {
		return Image{}, fmt.Errorf("images.pattern %q: %w", pattern, err)
	}
	expression, places := regexp.QuoteMeta(sample), 0
	for _, separator := range []string{".", "-", "_"} {
		marked := regexp.QuoteMeta(strings.ReplaceAll(mark.String(), ".", separator))
		places += strings.Count(expression, marked)
		s := regexp.QuoteMeta(separator)
		expression = strings.Replace(expression, marked, `(\d+)`+s+`(\d+)`+s+`(\d+)`, 1)
		expression = strings.ReplaceAll(expression, marked, `\d+`+s+`\d+`+s+`\d+`)
	}
	if places == 0 {
		return Image{}, fmt.Errorf("images.pattern %q has no version in it: want one such as ubuntu-2404-kube-{{.Version}}", pattern)
	}
	image.pattern, err = regexp.Compile("^" + expression + "$")
	return image, err
}

func (i Image) render(version *semver.Version) (string, error) {
	var out strings.Builder
	err := i.name.Execute(&out, names{Version: v(version), Number: version.String()})
	return out.String(), err
}

// For returns the name of the image for a version.
func (i Image) For(version *semver.Version) string {
	// newImage has rendered it once; the same fields are there for every version.
	name, _ := i.render(version)
	return name
}

// Version returns the version in the name of an image, nil where the name does not fit.
func (i Image) Version(name string) *semver.Version {
	m := i.pattern.FindStringSubmatch(name)
	if len(m) < 4 {
		return nil
	}
	version, err := semver.StrictNewVersion(strings.Join(m[1:4], "."))
	if err != nil {
		return nil
	}
	return version
}

// text is a string somewhere in an object.
type text struct {
	path  []string
	value string
}

// stringsIn lists the strings of spec.template.spec in the order of their paths, or the one at a path.
func stringsIn(object map[string]any, field string) []text {
	if field != "" {
		path := strings.Split(field, ".")
		var at any = object
		for _, name := range path {
			m, _ := at.(map[string]any)
			at = m[name]
		}
		if value, ok := at.(string); ok {
			return []text{{path, value}}
		}
		return nil
	}
	var at any = object
	path := []string{"spec", "template", "spec"}
	for _, name := range path {
		m, _ := at.(map[string]any)
		at = m[name]
	}
	var out []text
	collect(at, path, &out)
	return out
}

// collect does not look into lists: an item has no path that a patch could use.
func collect(at any, path []string, out *[]text) {
	switch value := at.(type) {
	case string:
		*out = append(*out, text{slices.Clone(path), value})
	case map[string]any:
		keys := make([]string, 0, len(value))
		for key := range value {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		for _, key := range keys {
			collect(value[key], append(path, key), out)
		}
	}
}
