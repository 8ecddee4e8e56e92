package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/addon"
	"github.com/millwright-dev/millwright/internal/cli"
	"github.com/millwright-dev/millwright/internal/kubeconfig"
)

// answerTimeout is how long a cluster may take to say its version. It bounds
// what a command costs when nobody is there.
const answerTimeout = 10 * time.Second

// targetFlags choose the cluster that a command works on.
type targetFlags struct {
	// cluster is the name of a workload cluster; empty for the current context.
	cluster string
}

func (f *targetFlags) addFlags(cmd *cobra.Command, o *cli.Options) {
	// It hides kubectl's global --cluster, which picks an entry of the kubeconfig.
	cmd.Flags().StringVar(&f.cluster, "cluster", "", "Work on this workload cluster, through the management cluster of the current context.")
	_ = cmd.RegisterFlagCompletionFunc("cluster", o.CompleteNames(cli.NameSource{GVK: clusterv1.GroupVersion.WithKind("Cluster")}))
}

// target is a cluster that answers.
type target struct {
	client client.WithWatch
	// name is what messages call it: cluster "prod", or the context.
	name string
	// host is the address of its API server.
	host string
	// version is that of its API server.
	version string
	// cluster is set for workload clusters, and management is where it was read.
	cluster    *clusterv1.Cluster
	management client.Client
}

// takeOver keeps the control plane's controller away from an add-on that it also looks after.
func (t *target) takeOver(ctx context.Context, o *cli.Options, name string) error {
	if t.cluster == nil {
		return nil
	}
	taken, err := addon.TakeFromControlPlane(ctx, t.management, t.cluster, name)
	if taken {
		fmt.Fprintf(o.ErrOut, "note: the control plane of %s does not look after %s any more\n", t.name, name)
	}
	return err
}

// giveBack lets the control plane's controller look after an add-on again.
func (t *target) giveBack(ctx context.Context, o *cli.Options, name string) error {
	if t.cluster == nil {
		return nil
	}
	given, err := addon.GiveBackToControlPlane(ctx, t.management, t.cluster, name)
	if given {
		fmt.Fprintf(o.ErrOut, "note: the control plane of %s looks after %s again\n", t.name, name)
	}
	return err
}

// place is where the facts of the target are read.
func (t *target) place() addon.Place {
	return addon.Place{Client: t.client, Name: t.name, Host: t.host, Version: t.version, Cluster: t.cluster}
}

// connect reaches the chosen cluster and asks its version.
func (f *targetFlags) connect(ctx context.Context, o *cli.Options) (*target, error) {
	if f.cluster != "" {
		return connectWorkload(ctx, o, f.cluster)
	}
	config, err := o.RESTConfig()
	if err != nil {
		return nil, err
	}
	c, err := o.Client()
	if err != nil {
		return nil, err
	}
	version, err := serverVersion(ctx, config)
	if err != nil {
		return nil, err
	}
	name := config.Host
	if contextName := o.ContextName(); contextName != "" {
		name = fmt.Sprintf("context %q", contextName)
	}
	return &target{client: c, name: name, host: config.Host, version: version}, nil
}

// connectWorkload reaches a workload cluster through its kubeconfig Secret.
func connectWorkload(ctx context.Context, o *cli.Options, name string) (*target, error) {
	management, err := o.ClusterAPI(ctx)
	if err != nil {
		return nil, err
	}
	namespace, err := o.Namespace()
	if err != nil {
		return nil, err
	}
	cluster := &clusterv1.Cluster{}
	err = management.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, cluster)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("cluster %q not found in namespace %s: see kubectl machines get -A", name, namespace)
	}
	if err != nil {
		return nil, fmt.Errorf("read cluster %q: %w", name, err)
	}
	return connectCluster(ctx, o, management, cluster)
}

// connectCluster reaches the workload cluster of a Cluster.
func connectCluster(ctx context.Context, o *cli.Options, management client.Client, cluster *clusterv1.Cluster) (*target, error) {
	name := cluster.Name
	data, err := workloadKubeconfig(ctx, management, cluster)
	if err != nil {
		return nil, err
	}
	config, err := kubeconfig.RESTConfig(data)
	if err != nil {
		return nil, fmt.Errorf("cluster %q: Secret %s: %w", name, kubeconfig.SecretName(name), err)
	}
	config = o.WrapConfigFn(config)
	version, err := serverVersion(ctx, config)
	if err != nil {
		// Without the *url.Error: it would be explained as one of the management cluster.
		return nil, fmt.Errorf("cluster %q: its API server at %s does not answer: %s: see kubectl machines tree %s", name, config.Host, cause(err), name)
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: cli.NewScheme()})
	if err != nil {
		return nil, fmt.Errorf("cluster %q: make a client: %w", name, err)
	}
	return &target{client: c, name: fmt.Sprintf("cluster %q", name), host: config.Host, version: version, cluster: cluster, management: management}, nil
}

func workloadKubeconfig(ctx context.Context, management client.Client, cluster *clusterv1.Cluster) ([]byte, error) {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: cluster.Namespace, Name: kubeconfig.SecretName(cluster.Name)}
	err := management.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("cluster %q has no kubeconfig yet (phase %s): wait until its control plane is there: see kubectl machines tree %s",
			cluster.Name, cluster.Status.Phase, cluster.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig of cluster %q: %w", cluster.Name, err)
	}
	if len(secret.Data[kubeconfig.Key]) == 0 {
		return nil, fmt.Errorf("cluster %q: Secret %s has no key %q: delete the Secret, its controller makes it anew", cluster.Name, key.Name, kubeconfig.Key)
	}
	return secret.Data[kubeconfig.Key], nil
}

// serverVersion asks an API server for its version: the first request, and the proof that it answers.
func serverVersion(ctx context.Context, config *rest.Config) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	probe := rest.CopyConfig(config)
	probe.Timeout = answerTimeout
	c, err := discovery.NewDiscoveryClientForConfig(probe)
	if err != nil {
		return "", fmt.Errorf("make a discovery client: %w", err)
	}
	info, err := c.ServerVersionWithContext(ctx)
	if err != nil {
		return "", err
	}
	return info.GitVersion, nil
}

// cause is the part of a connection error that is not the address.
func cause(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}
