package app

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/millwright-dev/millwright/addons"
	"github.com/millwright-dev/millwright/internal/bundle"
)

// Options are what flags decide.
type Options struct {
	Kubeconfig  string
	Controllers []string
	Namespace   string
	Concurrency int

	LeaderElect         bool
	OperatorNamespace   string
	LeaderElectIdentity string

	MetricsAddress string
	ProbeAddress   string

	// Catalogue is a folder of bundles, empty for the one that is built in; Mirror is a folder or an address that has what
	// they name by URL; Cache is a folder in which that is kept.
	Catalogue string
	Mirror    string
	Cache     string

	LogFormat string
	Verbosity int
}

// NewOptions returns the defaults.
func NewOptions() Options {
	return Options{
		Controllers:         groupNames(),
		Concurrency:         10,
		OperatorNamespace:   envOr("POD_NAMESPACE", "millwright-system"),
		LeaderElectIdentity: envOr("POD_NAME", hostname()),
		MetricsAddress:      ":8080",
		ProbeAddress:        ":8081",
		Catalogue:           os.Getenv("MILLWRIGHT_CATALOGUE"),
		Mirror:              os.Getenv("MILLWRIGHT_MIRROR"),
		Cache:               os.Getenv("MILLWRIGHT_CACHE"),
		LogFormat:           "json",
	}
}

// AddFlags registers the flags.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, "Path of the kubeconfig of the management cluster; default: the pod's service account, or $KUBECONFIG")
	flags.StringSliceVar(&o.Controllers, "controllers", o.Controllers, "Groups of controllers to run, of "+strings.Join(groupNames(), ", "))
	flags.StringVarP(&o.Namespace, "namespace", "n", o.Namespace, "Reconcile objects of this namespace only; default: all namespaces")
	flags.IntVar(&o.Concurrency, "concurrency", o.Concurrency, "How many objects of a kind are reconciled at once")
	flags.BoolVar(&o.LeaderElect, "leader-elect", o.LeaderElect, "Reconcile only while holding the Lease millwright-operator, so that a second replica can stand by")
	flags.StringVar(&o.OperatorNamespace, "operator-namespace", o.OperatorNamespace, "Namespace of the operator itself: of its Lease and of the Secrets of cluster-wide identities ($POD_NAMESPACE)")
	flags.StringVar(&o.LeaderElectIdentity, "leader-elect-identity", o.LeaderElectIdentity, "Name of this operator in the Lease; whoever starts with the holder's name takes over at once ($POD_NAME, else the host name)")
	flags.StringVar(&o.MetricsAddress, "metrics-bind-address", o.MetricsAddress, "Address of the Prometheus metrics; 0 serves none")
	flags.StringVar(&o.ProbeAddress, "health-probe-bind-address", o.ProbeAddress, "Address of /healthz and /readyz; 0 serves none")
	flags.StringVar(&o.Catalogue, "catalogue", o.Catalogue, "Folder of add-on bundles, or of one, instead of the built-in catalogue ($MILLWRIGHT_CATALOGUE)")
	flags.StringVar(&o.Mirror, "mirror", o.Mirror, "Folder or URL that has what the catalogue names by URL, instead of the network ($MILLWRIGHT_MIRROR)")
	flags.StringVar(&o.Cache, "cache", o.Cache, "Folder in which what was fetched by URL is kept; default: none ($MILLWRIGHT_CACHE)")
	flags.StringVar(&o.LogFormat, "log-format", o.LogFormat, "json or console")
	flags.IntVarP(&o.Verbosity, "v", "v", o.Verbosity, "Verbosity of the log")
}

// Validate tells what is wrong with the flags.
func (o *Options) Validate() error {
	if len(o.Controllers) == 0 {
		return fmt.Errorf("--controllers is empty: name at least one of %s", strings.Join(groupNames(), ", "))
	}
	for _, name := range o.Controllers {
		if !slices.Contains(groupNames(), name) {
			return fmt.Errorf("--controllers: unknown group %q: want some of %s", name, strings.Join(groupNames(), ", "))
		}
	}
	if o.Concurrency < 1 {
		return fmt.Errorf("--concurrency is %d: want at least 1", o.Concurrency)
	}
	if o.LogFormat != "json" && o.LogFormat != "console" {
		return fmt.Errorf("--log-format is %q: want json or console", o.LogFormat)
	}
	if o.LeaderElect && o.LeaderElectIdentity == "" {
		return fmt.Errorf("--leader-elect-identity is empty and this host has no name: set it")
	}
	return nil
}

// catalogue reads the catalogue that the flags choose.
func (o *Options) catalogue() (*bundle.Catalogue, error) {
	if o.Catalogue == "" {
		return bundle.Load(addons.Files)
	}
	return bundle.Open(o.Catalogue)
}

func envOr(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

// hostname is empty where the system knows none; Validate then asks for the flag.
func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return name
}
