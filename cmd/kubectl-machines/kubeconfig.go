package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/kubectl/pkg/util/templates"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/cli"
)

// kubeconfigKey is where the Secret <cluster>-kubeconfig keeps it (contract of
// control-plane providers).
const kubeconfigKey = "value"

// kubeconfigOptions print the kubeconfig of a cluster.
type kubeconfigOptions struct {
	*cli.Options
	cluster client.ObjectKey
	client  client.Client
}

func newKubeconfigCommand(o *cli.Options) *cobra.Command {
	kubeconfig := &kubeconfigOptions{Options: o}
	return &cobra.Command{
		Use:   "kubeconfig CLUSTER",
		Short: "Print the kubeconfig of a cluster",
		Long: templates.LongDesc(`
			Print the kubeconfig of a cluster, as its control plane's controller keeps it in the Secret
			CLUSTER-kubeconfig. It holds the credentials of an administrator: mind where it goes.`),
		Example: templates.Examples(`
			# List the nodes of a cluster
			kubectl --kubeconfig <({{kubectl}} kubeconfig prod) get nodes

			# Keep it in a file that only you can read
			(umask 077 && {{kubectl}} kubeconfig prod > prod.kubeconfig)`),
		Args:              cli.OneArg("CLUSTER"),
		ValidArgsFunction: o.CompleteFirst(clusterNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := kubeconfig.complete(cmd.Context(), args); err != nil {
				return err
			}
			return kubeconfig.run(cmd.Context())
		},
	}
}

func (o *kubeconfigOptions) complete(ctx context.Context, args []string) error {
	name, err := clusterName(args[0])
	if err != nil {
		return err
	}
	namespace, err := o.Namespace()
	if err != nil {
		return err
	}
	o.cluster = client.ObjectKey{Namespace: namespace, Name: name}
	o.client, err = o.ClusterAPI(ctx)
	return err
}

func (o *kubeconfigOptions) run(ctx context.Context) error {
	key := client.ObjectKey{Namespace: o.cluster.Namespace, Name: o.cluster.Name + "-kubeconfig"}
	secret := &corev1.Secret{}
	err := o.client.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		return o.explainMissing(ctx)
	}
	if err != nil {
		return fmt.Errorf("read the kubeconfig of cluster %q: %w", o.cluster.Name, err)
	}
	kubeconfig := secret.Data[kubeconfigKey]
	if len(kubeconfig) == 0 {
		return fmt.Errorf("cluster %q: Secret %s has no key %q: delete the Secret, its controller makes it anew", o.cluster.Name, key.Name, kubeconfigKey)
	}
	_, err = o.Out.Write(kubeconfig)
	return err
}

// explainMissing says why the Secret is not there: no such cluster, or how far
// the cluster has come.
func (o *kubeconfigOptions) explainMissing(ctx context.Context) error {
	cluster, err := getCluster(ctx, o.client, o.cluster)
	if err != nil {
		return err
	}
	see := fmt.Sprintf("see %s tree %s", o.Typed(), cluster.Name)
	switch {
	case cluster.DeletionTimestamp != nil:
		return fmt.Errorf("cluster %q is being deleted: its kubeconfig is gone already", cluster.Name)
	case !cluster.Spec.ControlPlaneRef.IsDefined():
		return fmt.Errorf("cluster %q has no kubeconfig: it names no control plane (spec.controlPlaneRef) that would make one; "+
			"put one into Secret %s-kubeconfig, key %q", cluster.Name, cluster.Name, kubeconfigKey)
	case !cluster.Spec.ControlPlaneEndpoint.IsValid():
		return fmt.Errorf("cluster %q has no kubeconfig yet: its infrastructure, %s %s, has not said where the control plane will answer: %s",
			cluster.Name, cluster.Spec.InfrastructureRef.Kind, cluster.Spec.InfrastructureRef.Name, see)
	default:
		return fmt.Errorf("cluster %q has no kubeconfig yet: %s %s has not made it: %s",
			cluster.Name, cluster.Spec.ControlPlaneRef.Kind, cluster.Spec.ControlPlaneRef.Name, see)
	}
}
