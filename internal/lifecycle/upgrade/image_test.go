package upgrade

import (
	"strings"
	"testing"
)

func machineTemplate(fields map[string]any) map[string]any {
	return map[string]any{"spec": map[string]any{"template": map[string]any{"spec": fields}}}
}

func TestTheNameOfAnImageFollowsTheVersion(t *testing.T) {
	cases := map[string]struct {
		fields         map[string]any
		field, pattern string
		wantField      string
		want           string
	}{
		"the version in the present name": {
			fields:    map[string]any{"template": "ubuntu-2404-kube-v1.36.3", "folder": "k8s", "network": map[string]any{"name": "n1"}},
			wantField: "spec.template.spec.template", want: "ubuntu-2404-kube-v1.37.2"},
		"without the v": {fields: map[string]any{"image": map[string]any{"id": "img/1.36.3/amd64"}}, wantField: "spec.template.spec.image.id", want: "img/1.37.2/amd64"},
		"with dashes":   {fields: map[string]any{"ami": "capa-u24-1-36-3-b7"}, wantField: "spec.template.spec.ami", want: "capa-u24-1-37-2-b7"},
		"a pattern":     {fields: map[string]any{"template": "golden-v1.30.0"}, pattern: "golden-{{.Version}}", wantField: "spec.template.spec.template", want: "golden-v1.37.2"},
		"a pattern of other names": {fields: map[string]any{"template": "golden-v1.36.3", "folder": "k8s"}, pattern: "silver-{{.Version}}",
			wantField: "spec.template.spec.template", want: "silver-v1.37.2"},
		"a number": {fields: map[string]any{"template": "golden-1.30.0"}, pattern: "golden-{{.Number}}", wantField: "spec.template.spec.template", want: "golden-1.37.2"},
		"a field that is named": {fields: map[string]any{"template": "whatever", "other": "x"}, field: "spec.template.spec.template", pattern: "new-{{.Version}}",
			wantField: "spec.template.spec.template", want: "new-v1.37.2"},
		"two places that might be": {fields: map[string]any{"a": "k-v1.36.3", "b": "k-v1.36.3"}, field: "spec.template.spec.b", wantField: "spec.template.spec.b", want: "k-v1.37.2"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			image, err := FindImage(machineTemplate(tc.fields), tc.field, tc.pattern, version("1.36.3"))
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(image.Field, "."); got != tc.wantField {
				t.Errorf("field is %s, want %s", got, tc.wantField)
			}
			if got := image.For(version("1.37.2")); got != tc.want {
				t.Errorf("name is %s, want %s", got, tc.want)
			}
			if got := image.Version(tc.want); got == nil || got.String() != "1.37.2" {
				t.Errorf("version in %s is %v", tc.want, got)
			}
			if got := image.Version("x" + tc.want); got != nil {
				t.Errorf("version in another name is %v, want none", got)
			}
		})
	}
}

func TestAnImageThatCannotBeFoundIsTold(t *testing.T) {
	cases := map[string]struct {
		fields         map[string]any
		field, pattern string
		want           string
	}{
		"no version in any name":     {fields: map[string]any{"template": "golden"}, want: "no name in it holds v1.36.3"},
		"another version":            {fields: map[string]any{"template": "golden-v1.35.0"}, want: "no name in it holds v1.36.3"},
		"two names":                  {fields: map[string]any{"a": "k-v1.36.3", "b": "k-v1.36.3"}, want: "spec.template.spec.a, spec.template.spec.b"},
		"a pattern that no one fits": {fields: map[string]any{"template": "golden-v1.35.0"}, pattern: "silver-{{.Version}}", want: `fits images.pattern "silver-{{.Version}}"`},
		"a pattern without version":  {fields: map[string]any{"template": "golden-v1.36.3"}, pattern: "golden", want: "has no version in it"},
		"a pattern that is broken":   {fields: map[string]any{"template": "golden-v1.36.3"}, pattern: "golden-{{.Versoin}}", want: "Versoin"},
		"a field that is not there":  {fields: map[string]any{"template": "golden-v1.36.3"}, field: "spec.template.spec.image", want: `images.field "spec.template.spec.image"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := FindImage(machineTemplate(tc.fields), tc.field, tc.pattern, version("1.36.3"))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v; want one that says %q", err, tc.want)
			}
		})
	}
}
