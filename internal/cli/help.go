package cli

import (
	"bytes"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/util/templates"
	"k8s.io/kubectl/pkg/util/term"
)

// kubectlPlaceholder stands in help texts for the command as the user types it,
// which is only known once the binary runs under some name.
const kubectlPlaceholder = "{{kubectl}}"

// useKubectlHelp gives root and its commands kubectl's help and usage.
func useKubectlHelp(root *cobra.Command, groups templates.CommandGroups) {
	templates.ActsAsRootCommand(root, []string{"options"}, groups...)
	root.SetFlagErrorFunc(flagError)
	finishTexts(root, root.DisplayName())

	// kubectl's templates name the root by its file name in one place.
	help, usage := root.HelpFunc(), root.UsageFunc()
	rename := strings.NewReplacer(`"`+root.Name()+" ", `"`+root.DisplayName()+" ")
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		out := cmd.OutOrStdout()
		renamed(cmd, out, rename, func() { help(cmd, args) })
	})
	root.SetUsageFunc(func(cmd *cobra.Command) error {
		var err error
		renamed(cmd, cmd.OutOrStderr(), rename, func() { err = usage(cmd) })
		return err
	})
}

// renamed runs render with the command's output captured, and passes it on
// renamed and wrapped to the width of the terminal.
func renamed(cmd *cobra.Command, out io.Writer, rename *strings.Replacer, render func()) {
	var captured bytes.Buffer
	cmd.SetOut(&captured)
	defer cmd.SetOut(out)
	render()
	_, _ = io.WriteString(term.NewResponsiveWriter(out), rename.Replace(captured.String()))
}

func finishTexts(cmd *cobra.Command, typed string) {
	cmd.Long = strings.ReplaceAll(cmd.Long, kubectlPlaceholder, typed)
	cmd.Example = strings.ReplaceAll(cmd.Example, kubectlPlaceholder, typed)
	// kubectl's usage line says [options] where cobra's says [flags].
	cmd.DisableFlagsInUseLine = true
	for _, sub := range cmd.Commands() {
		finishTexts(sub, typed)
	}
}

// newOptionsCommand lists the global flags, which kubectl keeps out of the help
// of each command.
func newOptionsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "options",
		Short: "Print the list of flags inherited by all commands",
		Args:  NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Usage() },
	}
	templates.UseOptionsTemplates(cmd)
	return cmd
}
