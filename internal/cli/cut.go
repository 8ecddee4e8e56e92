package cli

import (
	"strings"
	"unicode/utf8"
)

// cut returns the first width columns of a line. Control sequences for colour
// (ECMA-48 SGR: ESC [ … m) take no room and are kept, so that colours end.
func cut(line string, width int) string {
	var b strings.Builder
	column := 0
	for line != "" {
		if strings.HasPrefix(line, "\x1b[") {
			if end := strings.IndexByte(line, 'm'); end > 0 {
				b.WriteString(line[:end+1])
				line = line[end+1:]
				continue
			}
		}
		_, size := utf8.DecodeRuneInString(line)
		if column < width {
			b.WriteString(line[:size])
		}
		column++
		line = line[size:]
	}
	return b.String()
}
