package cli

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"
)

// Confirm says what a dangerous command is about to do, and where, and asks on a terminal. Elsewhere it is an error of
// the command line: only --yes, which is the argument yes, stands for an answer there.
func (o *Options) Confirm(yes bool, what ...string) error {
	if yes {
		return nil
	}
	if name := o.ContextName(); name != "" {
		fmt.Fprintf(o.ErrOut, "In context %q:\n", name)
	}
	for _, line := range what {
		fmt.Fprintf(o.ErrOut, "  %s\n", line)
	}
	in, ok := o.In.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return UsageErrorf("there is no terminal to ask on: confirm with --yes, or look first with --dry-run")
	}
	fmt.Fprint(o.ErrOut, "Go on? [y/N] ")
	answer, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && answer == "" {
		fmt.Fprintln(o.ErrOut)
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return errors.New("not confirmed: nothing was changed")
}
