package app

import (
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// NewCommand returns the operator's command.
func NewCommand() *cobra.Command {
	o := NewOptions()
	cmd := &cobra.Command{
		Use:           "operator",
		Short:         "Reconcile clusters, their machines and add-ons",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.Validate(); err != nil {
				return err
			}
			log := newLogger(o)
			ctrl.SetLogger(log)
			klog.SetLogger(log)
			config, err := loadConfig(o.Kubeconfig)
			if err != nil {
				return err
			}
			log.Info("Starting", "version", version(), "controllers", o.Controllers, "server", config.Host)
			mgr, err := NewManager(cmd.Context(), config, o, log)
			if err != nil {
				return err
			}
			if err := mgr.Start(cmd.Context()); err != nil {
				return fmt.Errorf("run the controllers: %w", err)
			}
			log.Info("Stopped")
			return nil
		},
	}
	o.AddFlags(cmd.Flags())
	return cmd
}

func newLogger(o Options) logr.Logger {
	// logr's verbosity is slog's level below zero.
	options := &slog.HandlerOptions{Level: slog.Level(-o.Verbosity)}
	if o.LogFormat == "console" {
		return logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, options))
	}
	return logr.FromSlogHandler(slog.NewJSONHandler(os.Stderr, options))
}

// loadConfig reads the kubeconfig that the flag names, else what a pod or $KUBECONFIG gives.
func loadConfig(path string) (*rest.Config, error) {
	if path == "" {
		config, err := ctrl.GetConfig()
		if err != nil {
			return nil, fmt.Errorf("find the management cluster: %w: run in a pod, or set --kubeconfig", err)
		}
		return config, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("read --kubeconfig: %w", err)
	}
	return config, nil
}

func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return info.Main.Version
}
