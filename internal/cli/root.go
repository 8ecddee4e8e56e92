package cli

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"
	"k8s.io/kubectl/pkg/util/templates"
)

// Plugin describes the root command of a kubectl plugin.
type Plugin struct {
	// Name is what follows "kubectl" on the command line: "machines", "addons".
	Name string
	// Short is one line, Long and Examples are indented as for
	// templates.LongDesc and templates.Examples; "{{kubectl}}" in them stands
	// for the command as the user types it.
	Short, Long, Examples string
	// Groups are the commands as the help lists them.
	Groups func(o *Options) templates.CommandGroups
	// Root makes the root command do something when it is called without a
	// command; nil shows the help.
	Root func(o *Options, root *cobra.Command)
}

// NewRoot builds the root command of a plugin with its commands, kubectl's
// global flags, and the commands every plugin has: version, completion, options.
func NewRoot(p Plugin, streams genericiooptions.IOStreams) *cobra.Command {
	typed := displayName(p.Name, os.Args[0])
	o := newOptions("kubectl-"+p.Name, typed, streams)
	root := &cobra.Command{
		Use:           "kubectl-" + p.Name,
		Short:         p.Short,
		Long:          templates.LongDesc(p.Long),
		Example:       templates.Examples(p.Examples),
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: typed},
		SilenceErrors: true,
		SilenceUsage:  true,
		// The completion command below replaces cobra's: kubectl asks through kubectl_complete-<name>.
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	root.SetContext(context.WithValue(context.Background(), optionsKey{}, o))

	o.ConfigFlags.AddFlags(root.PersistentFlags())
	addVerbosity(root.PersistentFlags())
	completeConfigFlags(root, o)
	if p.Root != nil {
		p.Root(o, root)
	} else {
		root.Run = func(cmd *cobra.Command, _ []string) { _ = cmd.Help() }
	}

	groups := p.Groups(o)
	groups.Add(root)
	root.AddCommand(newVersionCommand(o), newCompletionCommand(p.Name, o), newOptionsCommand())
	useKubectlHelp(root, groups)
	return root
}

// displayName is the command as the user types it. kubectl runs a file named
// kubectl-foo_bar for "kubectl foo-bar", so that a plugin installed under
// another name shows that name in its help.
func displayName(plugin, arg0 string) string {
	base := strings.TrimSuffix(filepath.Base(arg0), ".exe")
	typed, found := strings.CutPrefix(base, "kubectl-")
	if !found {
		typed, found = strings.CutPrefix(base, "kubectl_complete-")
	}
	if !found || typed == "" {
		typed = plugin
	}
	words := strings.ReplaceAll(typed, "-", " ")
	return "kubectl " + strings.ReplaceAll(words, "_", "-")
}

// addVerbosity adds klog's -v.
func addVerbosity(flags *pflag.FlagSet) {
	all := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(all)
	flags.AddGoFlag(all.Lookup("v"))
}
