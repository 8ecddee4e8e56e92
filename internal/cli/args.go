package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// OneArg accepts exactly one argument, which the usage line calls name.
func OneArg(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0 || args[0] == "":
			return fmt.Errorf("%s is missing", name)
		case len(args) > 1:
			return fmt.Errorf("one %s only, not %s", name, strings.Join(args, ", "))
		}
		return nil
	}
}

// AtLeastOneArg accepts one argument or more.
func AtLeastOneArg(name string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fmt.Errorf("%s is missing", name)
		}
		return nil
	}
}

// NoArgs accepts no argument. Cobra's own takes one for a command that does not exist.
func NoArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("no argument is expected, not %s", strings.Join(args, ", "))
	}
	return nil
}

// AtMostOneArg accepts one argument or none.
func AtMostOneArg(name string) cobra.PositionalArgs {
	one := OneArg(name)
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return one(cmd, args)
	}
}

// RequireFlag makes cmd refuse to run without the flag, in words of ours: cobra
// would say that a flag is "not set".
func RequireFlag(cmd *cobra.Command, name, value string) {
	check := cmd.Args
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if check != nil {
			if err := check(cmd, args); err != nil {
				return err
			}
		}
		if !cmd.Flags().Changed(name) {
			return fmt.Errorf("--%s %s is missing", name, value)
		}
		return nil
	}
	// Completion offers required flags first.
	_ = cmd.Flags().SetAnnotation(name, cobra.BashCompOneRequiredFlag, []string{"false"})
}
