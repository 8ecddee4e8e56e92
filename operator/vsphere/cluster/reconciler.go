package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	infrav1 "github.com/millwright-dev/millwright/api/infrastructure/v1beta2"
	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/contract"
	"github.com/millwright-dev/millwright/internal/patch"
	"github.com/millwright-dev/millwright/internal/vcenter"
	"github.com/millwright-dev/millwright/operator/vsphere/identity"
)

// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=vsphereclusters,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=vsphereclusters/status,verbs=patch
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=vsphereclusters/finalizers,verbs=update
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=vspheremachines;vspheredeploymentzones;vsphereclusteridentities,verbs=get;list;watch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconciler keeps VSphereClusters.
type Reconciler struct {
	Client client.Client
	// Live reads past the cache.
	Live     client.Reader
	Sessions *vcenter.Pool
	// Namespace is the operator's own, where the Secrets of VSphereClusterIdentities are.
	Namespace string
	Recorder  events.EventRecorder
}

// Reconcile brings one VSphereCluster up to date. A failure on the way to vCenter is in its conditions and is tried again
// with a growing pause; a change of the object, its Secret or its zones is taken in at once.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	cluster := &infrav1.VSphereCluster{}
	if err := r.Client.Get(ctx, req.NamespacedName, cluster); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	owner, err := contract.ClusterOf(ctx, r.Client, cluster)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	helper := patch.New(cluster, r.Client)
	conditions.Set(cluster, contract.PausedCondition(owner, cluster))
	if contract.Paused(owner, cluster) {
		return ctrl.Result{}, helper.Patch(ctx, cluster)
	}
	if !cluster.DeletionTimestamp.IsZero() {
		err := r.reconcileDelete(ctx, cluster)
		return ctrl.Result{}, errors.Join(err, helper.Patch(ctx, cluster))
	}
	if owner == nil {
		// Nobody's cluster: a template, or a manifest whose Cluster comes later. Its event brings us back.
		return ctrl.Result{}, nil
	}
	if controllerutil.AddFinalizer(cluster, infrav1.ClusterFinalizer) {
		// Stored before anything is done for which it would be needed.
		if err := helper.Patch(ctx, cluster); err != nil {
			return ctrl.Result{}, err
		}
	}

	loginErr := r.login(ctx, cluster, owner.Name)
	zones, err := r.zones(ctx, cluster)
	if err != nil {
		return ctrl.Result{}, err
	}
	before := conditions.Get(cluster, infrav1.VCenterAvailableCondition)
	d := decide(snapshot{cluster: cluster, loginErr: loginErr, zones: zones})
	setStatus(cluster, loginErr, d)
	r.tell(cluster, before == nil || before.Message != conditions.Get(cluster, infrav1.VCenterAvailableCondition).Message, loginErr)
	return ctrl.Result{}, errors.Join(loginErr, d.selectorErr, helper.Patch(ctx, cluster))
}

// login makes sure of the credentials and the session.
func (r *Reconciler) login(ctx context.Context, cluster *infrav1.VSphereCluster, clusterName string) error {
	resolver := identity.Resolver{Client: r.Client, Live: r.Live, Namespace: r.Namespace}
	secret, err := resolver.Secret(ctx, cluster)
	if err != nil {
		return err
	}
	endpoint, err := identity.From(cluster, secret)
	if err != nil {
		return err
	}
	if cluster.Spec.IdentityRef.Kind == infrav1.SecretKind {
		if err := r.keepSecret(ctx, cluster, secret, clusterName); err != nil {
			return err
		}
	}
	session, err := r.Sessions.Session(ctx, identity.Key(cluster), endpoint)
	if err != nil {
		return err
	}
	cluster.Status.VCenterVersion = session.Version()
	return nil
}

// keepSecret ties the Secret with the credentials to the cluster: the owner reference lets it be moved and deleted
// together with it, the finalizer keeps it for as long as virtual machines must be deleted with it, and the label lets
// its changes be seen. Several clusters may share it.
func (r *Reconciler) keepSecret(ctx context.Context, cluster *infrav1.VSphereCluster, secret *corev1.Secret, clusterName string) error {
	if !secret.DeletionTimestamp.IsZero() {
		return nil // It lasts until the cluster is gone.
	}
	before := secret
	secret = secret.DeepCopy()
	if err := controllerutil.SetOwnerReference(cluster, secret, r.Client.Scheme()); err != nil {
		return fmt.Errorf("make VSphereCluster %q an owner of Secret %q: %w", cluster.Name, secret.Name, err)
	}
	controllerutil.AddFinalizer(secret, infrav1.IdentitySecretFinalizer)
	if _, ok := secret.Labels[clusterv1.ClusterNameLabel]; !ok {
		if secret.Labels == nil {
			secret.Labels = map[string]string{}
		}
		secret.Labels[clusterv1.ClusterNameLabel] = contract.LabelValue(clusterName)
	}
	return r.patchSecret(ctx, before, secret)
}

// patchSecret writes metadata, if it changed. Lists of metadata are replaced whole, so a Secret that changed meanwhile is
// a conflict.
func (r *Reconciler) patchSecret(ctx context.Context, before, secret *corev1.Secret) error {
	if slices.Equal(before.Finalizers, secret.Finalizers) && before.Labels[clusterv1.ClusterNameLabel] == secret.Labels[clusterv1.ClusterNameLabel] &&
		len(before.OwnerReferences) == len(secret.OwnerReferences) {
		return nil
	}
	err := r.Client.Patch(ctx, secret, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner("millwright-vspherecluster"))
	if err != nil {
		return fmt.Errorf("tie Secret %q to its VSphereCluster: %w", client.ObjectKeyFromObject(secret), err)
	}
	return nil
}

func (r *Reconciler) zones(ctx context.Context, cluster *infrav1.VSphereCluster) ([]infrav1.VSphereDeploymentZone, error) {
	if cluster.Spec.FailureDomainSelector == nil {
		return nil, nil
	}
	list := &infrav1.VSphereDeploymentZoneList{}
	if err := r.Client.List(ctx, list); err != nil {
		return nil, fmt.Errorf("list VSphereDeploymentZones: %w", err)
	}
	return list.Items, nil
}

// reconcileDelete waits for the machines, and lets go of the Secret and the session.
func (r *Reconciler) reconcileDelete(ctx context.Context, cluster *infrav1.VSphereCluster) error {
	if !controllerutil.ContainsFinalizer(cluster, infrav1.ClusterFinalizer) {
		return nil
	}
	machines := &infrav1.VSphereMachineList{}
	if name := clusterName(cluster); name != "" {
		// Live: a machine that was created a moment ago counts too.
		if err := r.Live.List(ctx, machines, client.InNamespace(cluster.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: name}); err != nil {
			return fmt.Errorf("list the VSphereMachines of VSphereCluster %q: %w", cluster.Name, err)
		}
	}
	if n := len(machines.Items); n > 0 {
		conditions.Set(cluster, conditions.False(clusterv1.ReadyCondition, clusterv1.DeletingReason, "waiting for the deletion of %d VSphereMachines", n))
		return nil
	}
	if err := r.releaseSecret(ctx, cluster); err != nil {
		return err
	}
	r.Sessions.Release(identity.Key(cluster))
	controllerutil.RemoveFinalizer(cluster, infrav1.ClusterFinalizer)
	return nil
}

// releaseSecret gives up the Secret. The last owner takes the finalizer off; the others take themselves off the owners,
// since the garbage collector may come too late for the next one to see that it is the last.
func (r *Reconciler) releaseSecret(ctx context.Context, cluster *infrav1.VSphereCluster) error {
	if cluster.Spec.IdentityRef.Kind != infrav1.SecretKind {
		return nil
	}
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: cluster.Namespace, Name: cluster.Spec.IdentityRef.Name}
	if err := r.Live.Get(ctx, key, secret); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("get Secret %q: %w", key, err)
	}
	others := slices.ContainsFunc(secret.OwnerReferences, func(ref metav1.OwnerReference) bool {
		return ref.Kind == "VSphereCluster" && ref.UID != cluster.UID
	})
	before := secret.DeepCopy()
	if others {
		secret.OwnerReferences = slices.DeleteFunc(secret.OwnerReferences, func(ref metav1.OwnerReference) bool { return ref.UID == cluster.UID })
	} else {
		controllerutil.RemoveFinalizer(secret, infrav1.IdentitySecretFinalizer)
	}
	return client.IgnoreNotFound(r.patchSecret(ctx, before, secret))
}

// tell records an event when the state of the login changed.
func (r *Reconciler) tell(cluster *infrav1.VSphereCluster, changed bool, loginErr error) {
	if !changed {
		return
	}
	if loginErr != nil {
		reason := identity.Reason(loginErr)
		if reason == "" {
			reason = infrav1.VCenterUnreachableReason
		}
		r.Recorder.Eventf(cluster, nil, corev1.EventTypeWarning, reason, "Login", "%s", loginErr.Error())
		return
	}
	r.Recorder.Eventf(cluster, nil, corev1.EventTypeNormal, clusterv1.AvailableReason, "Login", "Logged in at vCenter %q", cluster.Spec.Server)
}
