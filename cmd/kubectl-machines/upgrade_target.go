package main

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lifecyclev1 "github.com/millwright-dev/millwright/api/lifecycle/v1alpha1"
	"github.com/millwright-dev/millwright/internal/cli"
)

// upgradeTarget is the cluster that a command is about.
type upgradeTarget struct {
	*cli.Options

	client  client.WithWatch
	cluster *clusterv1.Cluster
}

func (o *upgradeTarget) complete(ctx context.Context, arg string) error {
	name, err := clusterName(arg)
	if err != nil {
		return err
	}
	namespace, err := o.Namespace()
	if err != nil {
		return err
	}
	if o.client, err = o.ClusterAPI(ctx); err != nil {
		return err
	}
	o.cluster, err = getCluster(ctx, o.client, client.ObjectKey{Namespace: namespace, Name: name})
	return err
}

// upgrades lists those of the cluster, the newest first.
func (o *upgradeTarget) upgrades(ctx context.Context) ([]lifecyclev1.ClusterUpgrade, error) {
	list := &lifecyclev1.ClusterUpgradeList{}
	err := o.client.List(ctx, list, client.InNamespace(o.cluster.Namespace))
	if meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("this management cluster does not know ClusterUpgrades: install the operator, with --controllers=upgrade where upstream's controllers look after the machines: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("list the upgrades of cluster %q: %w", o.cluster.Name, err)
	}
	of := slices.DeleteFunc(list.Items, func(u lifecyclev1.ClusterUpgrade) bool { return u.Spec.ClusterName != o.cluster.Name })
	slices.SortStableFunc(of, func(a, b lifecyclev1.ClusterUpgrade) int {
		return b.CreationTimestamp.Compare(a.CreationTimestamp.Time)
	})
	return of, nil
}

// current is the upgrade that is under way, or the last one; an error where there is none.
func (o *upgradeTarget) current(ctx context.Context) (*lifecyclev1.ClusterUpgrade, error) {
	list, err := o.upgrades(ctx)
	if err != nil {
		return nil, err
	}
	for i := range list {
		if !list[i].Status.Phase.Over() {
			return &list[i], nil
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("cluster %q has no upgrade: begin one with %s upgrade %s --to VERSION", o.cluster.Name, o.Typed(), o.cluster.Name)
	}
	return &list[0], nil
}
