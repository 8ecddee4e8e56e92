package release

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	addonsv1 "github.com/millwright-dev/millwright/api/addons/v1alpha1"
	"github.com/millwright-dev/millwright/internal/addon"
	"github.com/millwright-dev/millwright/internal/apply"
	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/patch"
	"github.com/millwright-dev/millwright/internal/workload"
	"github.com/millwright-dev/millwright/operator/addons/claim"
)

// finalize takes a bundle off a cluster, or leaves it to whoever wants it, and lets the release go.
func (r *Reconciler) finalize(ctx context.Context, release *addonsv1.AddonRelease, cluster *clusterv1.Cluster, helper *patch.Helper) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(release, addonsv1.AddonReleaseFinalizer) {
		return ctrl.Result{}, nil
	}
	waiting, err := r.takeOff(ctx, release, cluster)
	if err == nil && waiting == "" {
		controllerutil.RemoveFinalizer(release, addonsv1.AddonReleaseFinalizer)
		r.forget(client.ObjectKeyFromObject(release))
		return ctrl.Result{}, helper.Patch(ctx, release)
	}
	if err != nil && isAnswer(err) {
		waiting = err.Error()
	}
	if waiting != "" {
		conditions.Set(release, conditions.False(addonsv1.ReadyCondition, addonsv1.UninstallingReason, "%s", waiting))
	}
	return ctrl.Result{}, errors.Join(err, helper.Patch(ctx, release))
}

// takeOff does what spec.deletion says. It returns what is waited for, "" when all is done.
func (r *Reconciler) takeOff(ctx context.Context, release *addonsv1.AddonRelease, cluster *clusterv1.Cluster) (string, error) {
	if cluster == nil || !cluster.DeletionTimestamp.IsZero() {
		// The objects go with the cluster.
		return "", nil
	}
	if paused(release, cluster) {
		return "it is paused", nil
	}
	heirs, err := r.heirs(ctx, release, cluster)
	if err != nil {
		return "", err
	}
	if len(heirs) > 0 {
		r.Recorder.Eventf(release, heirs[0], corev1.EventTypeNormal, "Left", "Uninstall", "the objects stay for Addon %q", heirs[0].Name)
		return "", nil
	}
	if dependent, err := r.dependent(ctx, release); err != nil || dependent != "" {
		return fmt.Sprintf("add-on %s, which depends on it, is uninstalled first", dependent), err
	}
	connection, err := r.Workload.Get(ctx, client.ObjectKeyFromObject(cluster))
	if errors.Is(err, workload.ErrNotConnected) {
		return r.unreachable(client.ObjectKeyFromObject(cluster)), nil
	}
	if err != nil {
		return "", err
	}
	engine, err := newEngine(release, connection)
	if err != nil {
		return "", err
	}
	if err := r.uninstall(ctx, engine, release); err != nil {
		return "", err
	}
	_, err = addon.GiveBackToControlPlane(ctx, r.Client, cluster, release.Spec.Bundle)
	return "", err
}

func (r *Reconciler) uninstall(ctx context.Context, engine *apply.Engine, release *addonsv1.AddonRelease) error {
	plan, err := engine.PlanUninstall(ctx, release.Spec.Bundle, r.retained(release))
	var absent *apply.NotInstalledError
	if errors.As(err, &absent) {
		return nil
	}
	if err != nil {
		return err
	}
	if release.Spec.Deletion == addonsv1.DeletionOrphan {
		return engine.Orphan(ctx, plan)
	}
	return engine.Uninstall(ctx, plan)
}

// heirs are the Addons that ask for the bundle on the cluster: what an Addon wants is not uninstalled, whoever deleted
// the release, for a network must not blink.
func (r *Reconciler) heirs(ctx context.Context, release *addonsv1.AddonRelease, cluster *clusterv1.Cluster) ([]*addonsv1.Addon, error) {
	list := &addonsv1.AddonList{}
	if err := r.Live.List(ctx, list, client.InNamespace(release.Namespace)); err != nil {
		return nil, fmt.Errorf("list the Addons that may want %q: %w", release.Name, err)
	}
	return claim.Claimants(list.Items, release.Spec.Bundle, cluster), nil
}

// dependent names a bundle that goes too, and has to go first since it depends on this one.
func (r *Reconciler) dependent(ctx context.Context, release *addonsv1.AddonRelease) (string, error) {
	others, err := r.releasesOn(ctx, client.ObjectKey{Namespace: release.Namespace, Name: release.Spec.ClusterName})
	if err != nil {
		return "", err
	}
	for i := range others {
		other := &others[i]
		if other.DeletionTimestamp.IsZero() || other.Status.Version == "" || other.Name == release.Name {
			continue
		}
		entry, err := r.Catalogue.Addon(other.Spec.Bundle)
		if err != nil {
			continue
		}
		version, err := entry.Version(other.Status.Version)
		if err == nil && slices.Contains(version.DependsOn, release.Spec.Bundle) {
			return other.Spec.Bundle, nil
		}
	}
	return "", nil
}

// retained asks the catalogue what the installed version retains. A version that it has no more retains nothing beyond
// the kinds that always stay.
func (r *Reconciler) retained(release *addonsv1.AddonRelease) func(apply.ID) bool {
	entry, err := r.Catalogue.Addon(release.Spec.Bundle)
	if err != nil {
		return nil
	}
	version, err := entry.Version(release.Status.Version)
	if err != nil {
		return nil
	}
	return addon.Retains(version)
}
