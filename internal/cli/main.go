package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Main runs the command line of a plugin and returns the exit code.
func Main(root *cobra.Command) int {
	ctx, stop := signal.NotifyContext(root.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return Run(ctx, root, os.Args)
}

// Run runs root, made by NewRoot, with the command line argv, whose first word is
// the name under which the binary was called, and returns the exit code.
func Run(ctx context.Context, root *cobra.Command, argv []string) int {
	args := argv[1:]
	if strings.HasPrefix(filepath.Base(argv[0]), "kubectl_complete-") {
		args = append([]string{cobra.ShellCompRequestCmd}, args...)
	}
	root.SetArgs(args)
	silence()

	o := optionsOf(root)
	started := false
	noteStart(root, &started)
	cmd, err := root.ExecuteContextC(context.WithValue(ctx, optionsKey{}, o))
	klog.Flush()
	if err == nil {
		return ExitDone
	}
	code := ExitCode(err)
	// Until a command runs, cobra can only have found fault with the command line.
	if !started {
		code = ExitUsage
	}
	text := ""
	if code == ExitUsage {
		text = usageMessage(cmd, err)
	} else {
		text = o.message(err)
	}
	if text != "" {
		fmt.Fprintln(root.ErrOrStderr(), text)
	}
	return code
}

// noteStart makes each command of the tree note in started that it runs.
func noteStart(cmd *cobra.Command, started *bool) {
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			*started = true
			if v := cmd.Flag("v"); v != nil && v.Changed {
				speak()
			}
			return run(cmd, args)
		}
	}
	for _, sub := range cmd.Commands() {
		noteStart(sub, started)
	}
}

// silence keeps client-go and controller-runtime from writing on stderr, also
// during completion: what the user must know is in our errors.
func silence() {
	klog.SetLogger(logr.Discard())
	log.SetLogger(logr.Discard())
}

// speak undoes silence, for -v.
func speak() {
	klog.ClearLogger()
	log.SetLogger(klog.Background())
}
