package cloudinit

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

func roundTrip(t *testing.T, content string) string {
	t.Helper()
	data, err := MarshalYAML(map[string]any{"list": []any{map[string]string{"content": content}}})
	if err != nil {
		t.Fatalf("%q: %v", content, err)
	}
	var got struct {
		List []map[string]string `yaml:"list"`
	}
	if err := yaml.Unmarshal(data, &got); err != nil {
		t.Fatalf("%q is written as invalid YAML: %v\n%s", content, err, data)
	}
	if len(got.List) != 1 || got.List[0]["content"] != content {
		t.Errorf("%q comes back as %q\n%s", content, got.List, data)
	}
	return string(data)
}

func TestAnyContentSurvivesYAML(t *testing.T) {
	for _, content := range []string{
		"", " ", "\n", "a", "a\n", "a\n\n", "\n\na", " leading", "\tleading tab\n", "trailing \nspace \n",
		"'", `"`, "# no comment", "- no list", "key: value", "{a: b}", "[x", "*anchor", "&anchor", "!tag", "%YAML", "@at", "`tick",
		"null", "~", "true", "yes", "0644", "1e3", "0x10", "2026-11-30", "---", "...", "---\na: b\n", "a\r\nb\r\n", "\u2028\u0085",
		"\x00\x01\x7f", "日本語 🙂", `{{ ds.meta_data["host'name"] }}`, "{% if a %}\n b\n{% endif %}", "  {{ indented }}\nmore\n",
		strings.Repeat("long words ", 40), "#!/bin/bash\nset -e\n\n  echo \"$A\" | sed 's#a#b#'\n",
	} {
		roundTrip(t, content)
	}
}

func TestRandomContentSurvivesYAML(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	alphabet := []rune("ab \n\t:#-'\"{}[]%|>\r\\&*!é")
	for range 3000 {
		content := make([]rune, random.IntN(14))
		for i := range content {
			content[i] = alphabet[random.IntN(len(alphabet))]
		}
		roundTrip(t, string(content))
	}
}

func TestJinjaIsLeftAsTyped(t *testing.T) {
	for _, expression := range []string{
		`{{ local_hostname }}`,
		`hostnamectl set-hostname "{{ ds.meta_data.hostname }}"`,
		`{{ ds.meta_data['it''s'] ~ "x" }}`,
		`{% if a == "b" %}'c'{% endif %}`,
	} {
		if data := roundTrip(t, expression); !strings.Contains(data, expression) {
			t.Errorf("%s is escaped:\n%s", expression, data)
		}
	}
}

func TestFieldsKeepTheOrderOfTheStruct(t *testing.T) {
	data, err := MarshalYAML(struct {
		Z int      `json:"z"`
		A bool     `json:"a"`
		M []string `json:"m"`
		N *int     `json:"n"`
		F float64  `json:"f"`
	}{Z: 1, A: true, M: []string{}, F: 1.5})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("z: 1\na: true\nm: []\n\"n\": null\nf: 1.5\n", string(data)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
