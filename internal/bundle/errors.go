package bundle

import (
	"fmt"
	"strings"
)

// FileError says what is wrong with a file of a bundle, and on which line.
type FileError struct {
	File string
	// Line counts from 1; 0 when the mistake has no line.
	Line int
	Err  error
}

func (e *FileError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %v", e.File, e.Err)
	}
	return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err)
}

func (e *FileError) Unwrap() error { return e.Err }

// UnknownError says that something was asked for by a name that does not exist.
type UnknownError struct {
	// What is the kind of thing: "add-on", "version", "parameter".
	What string
	Name string
	// Of is where it was looked for, such as "add-on calico"; empty for the catalogue.
	Of string
	// Known are the names that exist.
	Known []string
}

func (e *UnknownError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "unknown %s %q", e.What, e.Name)
	if e.Of != "" {
		fmt.Fprintf(&b, " of %s", e.Of)
	}
	if near := nearest(e.Name, e.Known); near != "" {
		fmt.Fprintf(&b, ": did you mean %q?", near)
	}
	if len(e.Known) == 0 {
		b.WriteString(": there are none")
	} else {
		fmt.Fprintf(&b, " (there are: %s)", strings.Join(e.Known, ", "))
	}
	return b.String()
}

// nearest returns the name in known that is most like name, or "" when none is alike.
func nearest(name string, known []string) string {
	best, bestDistance := "", len(name)/2+1
	for _, candidate := range known {
		if d := editDistance(strings.ToLower(name), strings.ToLower(candidate)); d < bestDistance {
			best, bestDistance = candidate, d
		}
	}
	return best
}

// editDistance counts the insertions, deletions, substitutions and swaps of
// neighbours between two strings (optimal string alignment).
func editDistance(a, b string) int {
	var before []int
	previous := make([]int, len(b)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := 1; i <= len(a); i++ {
		current := make([]int, len(b)+1)
		current[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			current[j] = min(previous[j]+1, current[j-1]+1, previous[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				current[j] = min(current[j], before[j-2]+1)
			}
		}
		before, previous = previous, current
	}
	return previous[len(b)]
}
