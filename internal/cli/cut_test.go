package cli

import "testing"

func TestCut(t *testing.T) {
	cases := map[string]struct {
		line  string
		width int
		want  string
	}{
		"a short line stays":            {"abc", 5, "abc"},
		"a long line ends at the width": {"abcdef", 3, "abc"},
		"branches count as one column":  {"├─└─x", 4, "├─└─"},
		"colours take no room and end":  {"\x1b[31mFalse\x1b[0m now", 7, "\x1b[31mFalse\x1b[0m n"},
		"a colour that is cut ends":     {"\x1b[31mFalse\x1b[0m now", 2, "\x1b[31mFa\x1b[0m"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := cut(tc.line, tc.width); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
