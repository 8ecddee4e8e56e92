package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	releasesv1 "github.com/millwright-dev/millwright/api/addons/v1alpha1"
	lifecyclev1 "github.com/millwright-dev/millwright/api/lifecycle/v1alpha1"
)

// Requests a second that a command may send, and at once. client-go's default
// of 5 and 10 makes a command that reads a few hundred objects wait for itself;
// the server has its own priority and fairness.
const (
	clientQPS   = 100
	clientBurst = 200
)

// Options are what every command of a plugin shares: kubectl's connection flags
// and the streams. They make the client once the flags are parsed.
type Options struct {
	*genericclioptions.ConfigFlags
	genericiooptions.IOStreams

	plugin string
	typed  string
	client client.WithWatch
}

// Typed is the plugin as the user types it, for messages: "kubectl machines".
func (o *Options) Typed() string { return o.typed }

type optionsKey struct{}

// optionsOf returns the options of the plugin that cmd belongs to.
func optionsOf(cmd *cobra.Command) *Options {
	o, _ := cmd.Context().Value(optionsKey{}).(*Options)
	return o
}

// newOptions returns options whose client introduces itself as plugin, which the
// user calls by the words typed.
func newOptions(plugin, typed string, streams genericiooptions.IOStreams) *Options {
	o := &Options{ConfigFlags: genericclioptions.NewConfigFlags(true), IOStreams: streams, plugin: plugin, typed: typed}
	o.ConfigFlags.WrapConfigFn = func(config *rest.Config) *rest.Config {
		config.QPS, config.Burst = clientQPS, clientBurst
		config.UserAgent = plugin + "/" + GetVersion().Version
		config.WarningHandler = rest.NewWarningWriter(streams.ErrOut, rest.WarningWriterOptions{Deduplicate: true})
		return config
	}
	return o
}

// Namespace returns the namespace of -n, or that of the current context.
func (o *Options) Namespace() (string, error) {
	namespace, _, err := o.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", o.configError(err)
	}
	return namespace, nil
}

// ContextName returns the name of the kubeconfig context in use; empty where the
// connection comes from flags or from inside a cluster.
func (o *Options) ContextName() string {
	if o.ConfigFlags.Context != nil && *o.ConfigFlags.Context != "" {
		return *o.ConfigFlags.Context
	}
	raw, err := o.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return ""
	}
	return raw.CurrentContext
}

// RESTConfig returns the connection to the server of the current context.
func (o *Options) RESTConfig() (*rest.Config, error) {
	if err := o.requireKubeconfig(); err != nil {
		return nil, err
	}
	config, err := o.ToRESTConfig()
	if err != nil {
		return nil, o.configError(err)
	}
	return config, nil
}

// Client returns a client for the server of the current context. It knows the
// kinds of Kubernetes and of Cluster API v1beta2; kinds of other providers are
// read unstructured.
func (o *Options) Client() (client.WithWatch, error) {
	if o.client != nil {
		return o.client, nil
	}
	config, err := o.RESTConfig()
	if err != nil {
		return nil, err
	}
	// kubectl's mapper keeps discovery on disk: a command costs no discovery request.
	mapper, err := o.ToRESTMapper()
	if err != nil {
		return nil, fmt.Errorf("make a REST mapper: %w", err)
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: NewScheme(), Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	o.client = c
	return c, nil
}

// ClusterAPI returns a client like Client, once the server has shown that it
// serves Cluster API at v1beta2; else a *MissingAPIError.
func (o *Options) ClusterAPI(context.Context) (client.WithWatch, error) {
	c, err := o.Client()
	if err != nil {
		return nil, err
	}
	if err := o.requireClusterAPI(); err != nil {
		return nil, err
	}
	return c, nil
}

// NewScheme returns the kinds that the plugins know by type: those of Kubernetes,
// of Cluster API v1beta2, and ours.
func NewScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(clusterv1.AddToScheme(scheme))
	utilruntime.Must(bootstrapv1.AddToScheme(scheme))
	utilruntime.Must(controlplanev1.AddToScheme(scheme))
	utilruntime.Must(addonsv1.AddToScheme(scheme))
	utilruntime.Must(lifecyclev1.AddToScheme(scheme))
	utilruntime.Must(releasesv1.AddToScheme(scheme))
	return scheme
}
