package cloudinit

import (
	"errors"
	"strings"
)

// step is one simple command of a shell line and when it runs.
type step struct {
	args     []string
	redirect string // target of > or >>
	append   bool
	when     condition
}

type condition int

const (
	always condition = iota
	afterSuccess
	afterFailure
)

// errComplex says that a line needs a real shell: expansion, pipes, loops.
var errComplex = errors.New("needs a shell")

// parseLine splits a shell line of simple commands joined by ;, && and ||. It
// knows quotes, a trailing > or >> and comments, and gives up with errComplex on
// the rest of the language.
func parseLine(line string) ([]step, error) {
	tokens, err := tokenize(line)
	if err != nil {
		return nil, err
	}
	var steps []step
	current := step{}
	flush := func(next condition) error {
		if len(current.args) == 0 {
			if next != always || current.when != always {
				return errComplex
			}
			return nil
		}
		if keyword(current.args[0]) {
			return errComplex
		}
		steps = append(steps, current)
		current = step{when: next}
		return nil
	}
	for n := 0; n < len(tokens); n++ {
		switch token := tokens[n]; {
		case !token.operator:
			current.args = append(current.args, token.text)
		case token.text == ";":
			err = flush(always)
		case token.text == "&&":
			err = flush(afterSuccess)
		case token.text == "||":
			err = flush(afterFailure)
		case (token.text == ">" || token.text == ">>") && n+1 < len(tokens) && !tokens[n+1].operator:
			current.redirect, current.append = tokens[n+1].text, token.text == ">>"
			n++
		default:
			err = errComplex
		}
		if err != nil {
			return nil, err
		}
	}
	if err := flush(always); err != nil {
		return nil, err
	}
	return steps, nil
}

func keyword(word string) bool {
	switch word {
	case "for", "while", "until", "if", "case", "function", "{", "!", "[[", "time", "exec", "eval", "set", "trap", "cd":
		return true
	}
	// An assignment before a command, or alone, changes what follows.
	name, _, assigned := strings.Cut(word, "=")
	return assigned && identifier(name)
}

type token struct {
	text     string
	operator bool
}

func tokenize(line string) ([]token, error) {
	var tokens []token
	var word strings.Builder
	inWord := false
	end := func() {
		if inWord {
			tokens = append(tokens, token{text: word.String()})
			word.Reset()
			inWord = false
		}
	}
	for n := 0; n < len(line); n++ {
		c := line[n]
		switch {
		case c == ' ' || c == '\t':
			end()
		case c == '\n':
			end()
			tokens = append(tokens, token{text: ";", operator: true})
		case c == '#' && !inWord:
			for n+1 < len(line) && line[n+1] != '\n' {
				n++
			}
		case c == '\\':
			if n++; n >= len(line) {
				return nil, errComplex
			}
			if line[n] != '\n' {
				word.WriteByte(line[n])
				inWord = true
			}
		case c == '\'' || c == '"':
			text, next, err := quoted(line, n)
			if err != nil {
				return nil, err
			}
			word.WriteString(text)
			inWord, n = true, next
		case c == ';' || c == '&' || c == '|' || c == '>' || c == '<':
			// 2> and the like redirect another stream.
			if (c == '>' || c == '<') && inWord && numeric(word.String()) {
				return nil, errComplex
			}
			end()
			operator := string(c)
			if n+1 < len(line) && line[n+1] == c && c != ';' {
				operator += string(c)
				n++
			}
			tokens = append(tokens, token{text: operator, operator: true})
		case strings.IndexByte("$`()*?[", c) >= 0:
			return nil, errComplex
		default:
			word.WriteByte(c)
			inWord = true
		}
	}
	end()
	return tokens, nil
}

// quoted reads the quoted text that begins at from and returns where it ends.
func quoted(line string, from int) (string, int, error) {
	quote := line[from]
	var text strings.Builder
	for n := from + 1; n < len(line); n++ {
		c := line[n]
		switch {
		case c == quote:
			return text.String(), n, nil
		case quote == '"' && (c == '$' || c == '`'):
			return "", 0, errComplex
		case quote == '"' && c == '\\' && n+1 < len(line) && strings.IndexByte("\"\\$`", line[n+1]) >= 0:
			n++
			text.WriteByte(line[n])
		default:
			text.WriteByte(c)
		}
	}
	return "", 0, errComplex
}
