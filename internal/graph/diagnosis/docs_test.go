package diagnosis

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var codeInSource = regexp.MustCompile(`(?:[cC]ode(?:, trouble\.layer)?:? :?=? ?|finding\(|inWorkload\()"([A-Z][A-Za-z]+)"`)

// TestEveryCodeIsDocumented reads the codes out of the source, so that a new one cannot be forgotten.
func TestEveryCodeIsDocumented(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "troubleshooting.md"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	codes := map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range codeInSource.FindAllStringSubmatch(string(source), -1) {
			codes[match[1]] = true
		}
	}
	// The troubles of the other test are known to be codes: where none of them is found, the expression is wrong.
	for _, trouble := range troubles {
		if !codes[trouble.first] {
			t.Errorf("code %s is not found in the source", trouble.first)
		}
	}
	for code := range codes {
		if !regexp.MustCompile(`\b` + code + `\b`).Match(doc) {
			t.Errorf("docs/troubleshooting.md does not explain %s", code)
		}
	}
}
