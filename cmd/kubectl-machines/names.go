package main

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/cli"
)

// What completes the arguments of commands.
var (
	clusterNames      = cli.NameSource{GVK: clusterv1.GroupVersion.WithKind("Cluster")}
	deploymentNames   = cli.NameSource{GVK: clusterv1.GroupVersion.WithKind("MachineDeployment")}
	controlPlaneNames = cli.NameSource{
		GVK: controlplanev1.GroupVersion.WithKind("KubeadmControlPlane"), Prefix: "kubeadmcontrolplane/",
	}
)

// namedInError is how many names an error lists of what there is instead.
const namedInError = 5

// clusterName checks the argument CLUSTER: the name of a cluster is the value of a label on its machines.
func clusterName(arg string) (string, error) {
	if problems := validation.IsValidLabelValue(arg); len(problems) > 0 {
		return "", cli.UsageErrorf("%q is no name of a cluster: give the name alone, without a kind", arg)
	}
	return arg, nil
}

// getCluster reads a cluster. When there is none of that name, the error names
// those that there are.
func getCluster(ctx context.Context, c client.Client, key client.ObjectKey) (*clusterv1.Cluster, error) {
	cluster := &clusterv1.Cluster{}
	err := c.Get(ctx, key, cluster)
	if apierrors.IsNotFound(err) {
		return nil, clusterNotFound(ctx, c, key)
	}
	if err != nil {
		return nil, fmt.Errorf("read cluster %q: %w", key.Name, err)
	}
	return cluster, nil
}

func clusterNotFound(ctx context.Context, c client.Client, key client.ObjectKey) error {
	next := "there is none in this namespace; -n NAMESPACE looks in another, kubectl machines get -A in all"
	if names := listNames(ctx, c, &clusterv1.ClusterList{}, key.Namespace); len(names) > 0 {
		next = "there is " + strings.Join(names, ", ")
	}
	return fmt.Errorf("cluster %q not found in namespace %s: %s", key.Name, key.Namespace, next)
}

// listNames returns a few names for an error message; none where they cannot be
// listed, since the message is about something else.
func listNames(ctx context.Context, c client.Client, list client.ObjectList, namespace string) []string {
	if err := c.List(ctx, list, client.InNamespace(namespace), client.Limit(namedInError)); err != nil {
		return nil
	}
	var names []string
	_ = meta.EachListItem(list, func(item runtime.Object) error {
		names = append(names, item.(client.Object).GetName())
		return nil
	})
	return names
}
