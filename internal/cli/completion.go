package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/kubectl/pkg/util/templates"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// completionTimeout is how long a shell waits for names at most.
const completionTimeout = 5 * time.Second

func newCompletionCommand(plugin string, o *Options) *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "Output shell completion code for the specified shell (bash, zsh, fish, or powershell)",
		Long: templates.LongDesc(fmt.Sprintf(`
			Output shell completion code for this plugin called by its own name, kubectl-%[1]s.

			For completion after "{{kubectl}}", kubectl itself asks a program kubectl_complete-%[1]s on
			your PATH. It is the same binary, told by its name: a link is enough.`, plugin)),
		Example: templates.Examples(fmt.Sprintf(`
			# Complete "{{kubectl}} ..." in every shell in which kubectl completes
			ln -s "$(command -v kubectl-%[1]s)" ~/.local/bin/kubectl_complete-%[1]s

			# Complete the bare binary in this bash
			source <({{kubectl}} completion bash)`, plugin)),
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: shells,
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(o.Out, true)
			case "zsh":
				return root.GenZshCompletion(o.Out)
			case "fish":
				return root.GenFishCompletion(o.Out, true)
			default:
				return root.GenPowerShellCompletionWithDesc(o.Out)
			}
		},
	}
}

// completeConfigFlags completes the values of --context, --cluster, --user and --namespace.
func completeConfigFlags(root *cobra.Command, o *Options) {
	fromConfig := map[string]func(api.Config) []string{
		"context": func(c api.Config) []string { return slices.Sorted(maps.Keys(c.Contexts)) },
		"cluster": func(c api.Config) []string { return slices.Sorted(maps.Keys(c.Clusters)) },
		"user":    func(c api.Config) []string { return slices.Sorted(maps.Keys(c.AuthInfos)) },
	}
	for name, names := range fromConfig {
		_ = root.RegisterFlagCompletionFunc(name, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			raw, err := o.ToRawKubeConfigLoader().RawConfig()
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return names(raw), cobra.ShellCompDirectiveNoFileComp
		})
	}
	_ = root.RegisterFlagCompletionFunc("namespace", o.CompleteNames(NameSource{GVK: corev1.SchemeGroupVersion.WithKind("Namespace"), ClusterScoped: true}))
}

// NameSource tells which names complete an argument.
type NameSource struct {
	GVK           schema.GroupVersionKind
	ClusterScoped bool
	// Prefix goes before each name: "kubeadmcontrolplane/".
	Prefix string
}

// CompleteNames completes the first argument of a command, or the value of a
// flag, with the names of live objects. It reads metadata only, and gives up
// quietly: an error would be drawn over the user's prompt.
func (o *Options) CompleteNames(sources ...NameSource) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
		defer cancel()
		c, err := o.Client()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		namespace, err := o.Namespace()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		for _, source := range sources {
			list := &metav1.PartialObjectMetadataList{}
			list.SetGroupVersionKind(source.GVK.GroupVersion().WithKind(source.GVK.Kind + "List"))
			in := client.InNamespace(namespace)
			if source.ClusterScoped {
				in = ""
			}
			if err := c.List(ctx, list, in); err != nil {
				continue
			}
			for _, item := range list.Items {
				if name := source.Prefix + item.Name; strings.HasPrefix(name, toComplete) && !slices.Contains(args, name) {
					names = append(names, name)
				}
			}
		}
		slices.Sort(names)
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// CompleteFirst is CompleteNames for commands that take one argument.
func (o *Options) CompleteFirst(sources ...NameSource) cobra.CompletionFunc {
	complete := o.CompleteNames(sources...)
	return func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(cmd, args, toComplete)
	}
}
