package corefile

import (
	"fmt"
	"strings"

	"github.com/coredns/caddy/caddyfile"
	"github.com/coredns/corefile-migration/migration/corefile"
)

// balanced refuses a Corefile that the migration cannot read: it would crash on it.
func balanced(text string) error {
	depth, first := 0, true
	for _, token := range tokens(text) {
		switch token.text {
		case "{":
			depth++
			if first {
				return fmt.Errorf("the Corefile, line %d: a block without a name", token.line)
			}
		case "}":
			depth--
			if depth < 0 {
				return fmt.Errorf("the Corefile, line %d: a brace closes nothing", token.line)
			}
		}
		first = false
	}
	if depth != 0 {
		return fmt.Errorf("the Corefile: %d braces are not closed", depth)
	}
	return nil
}

// lossless refuses a Corefile that the migration would write with something
// missing, such as a block within an option.
func lossless(text string) error {
	written, err := reformat(text)
	if err != nil {
		return err
	}
	before, after := tokens(text), tokens(written)
	for i, token := range before {
		if i >= len(after) || after[i].text != token.text {
			return fmt.Errorf("the Corefile, line %d: %q would be lost in a migration: migrate it by hand", token.line, token.text)
		}
	}
	return nil
}

// reformat writes a Corefile as the migration writes one.
func reformat(text string) (string, error) {
	parsed, err := corefile.New(text)
	if err != nil {
		return "", fmt.Errorf("read the Corefile: %w", err)
	}
	return parsed.ToString(), nil
}

type token struct {
	text string
	line int
}

// tokens are the words of a Corefile, without comments.
func tokens(text string) []token {
	var list []token
	dispenser := caddyfile.NewDispenser("Corefile", strings.NewReader(text))
	for dispenser.Next() {
		list = append(list, token{text: dispenser.Val(), line: dispenser.Line()})
	}
	return list
}
