package cli

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/util/templates"
	"sigs.k8s.io/yaml"
)

// version is set at release: -ldflags "-X github.com/millwright-dev/millwright/internal/cli.version=v1.2.3".
var version string

// Version is what a binary knows of its own making.
type Version struct {
	Version   string `json:"version"`
	Commit    string `json:"commit,omitempty"`
	Date      string `json:"date,omitempty"`
	Modified  bool   `json:"modified,omitempty"`
	GoVersion string `json:"goVersion"`
	Platform  string `json:"platform"`
}

// GetVersion reads the version that was set at release, else the one that Go
// recorded when it built the binary from a module or a checkout.
func GetVersion() Version {
	v := Version{Version: version, GoVersion: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v.orDevel()
	}
	if v.Version == "" && info.Main.Version != "(devel)" {
		v.Version = info.Main.Version
	}
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			v.Commit = setting.Value
		case "vcs.time":
			v.Date = setting.Value
		case "vcs.modified":
			v.Modified = setting.Value == "true"
		}
	}
	return v.orDevel()
}

func (v Version) orDevel() Version {
	if v.Version == "" {
		v.Version = "devel"
	}
	return v
}

func newVersionCommand(o *Options) *cobra.Command {
	var output string
	var clientOnly bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this plugin",
		Long:  templates.LongDesc("Print the version of this plugin. It asks no server."),
		Example: templates.Examples(`
			# Print the version
			{{kubectl}} version

			# Print it with the commit and the Go version, for a bug report
			{{kubectl}} version -o yaml`),
		Args: NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := GetVersion()
			switch output {
			case "":
				fmt.Fprintf(o.Out, "%s %s (%s, %s)\n", o.plugin, v.Version, v.GoVersion, v.Platform)
			case "json":
				text, err := json.MarshalIndent(v, "", "  ")
				if err != nil {
					return fmt.Errorf("encode the version: %w", err)
				}
				fmt.Fprintf(o.Out, "%s\n", text)
			case "yaml":
				text, err := yaml.Marshal(v)
				if err != nil {
					return fmt.Errorf("encode the version: %w", err)
				}
				fmt.Fprintf(o.Out, "%s", text)
			default:
				return UsageErrorf("--output must be json or yaml, not %q", output)
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "Output format. One of: (json, yaml).")
	cmd.Flags().BoolVar(&clientOnly, "client", true, "Only the version of the plugin: there is no other, the flag is kubectl's.")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}
