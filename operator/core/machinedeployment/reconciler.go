package machinedeployment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/contract"
	"github.com/millwright-dev/millwright/internal/contract/watches"
	"github.com/millwright-dev/millwright/internal/patch"
)

// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machinedeployments,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machinedeployments/status,verbs=patch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machinedeployments/finalizers,verbs=update
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machinesets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters;machines,verbs=get;list;watch
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=vspheremachinetemplates,verbs=get;list;watch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// fieldOwner is the name under which new MachineSets are applied.
const fieldOwner = "millwright-machinedeployment"

// Reconciler keeps the MachineSets of MachineDeployments.
type Reconciler struct {
	Client client.Client
	// Live reads past the cache: sizes are decided on what the API server holds.
	Live     client.Reader
	Recorder events.EventRecorder

	resolver contract.Resolver
	watcher  *watches.Watcher
	news     *patch.Unhurried
}

// countersDelay is how long counters that rise may go unwritten: they count many machines, and each moves them.
const countersDelay = time.Second

// Reconcile brings the sets of one MachineDeployment to what it asks for and tells its state in its status.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	deployment := &clusterv1.MachineDeployment{}
	if err := r.Client.Get(ctx, req.NamespacedName, deployment); err != nil {
		if apierrors.IsNotFound(err) {
			r.news.Forget(req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	before := deployment.Status.DeepCopy()
	cluster, err := r.clusterOf(ctx, deployment)
	if err != nil {
		return ctrl.Result{}, err
	}
	helper := patch.New(deployment, r.Client)
	var result ctrl.Result
	switch {
	case contract.Paused(cluster, deployment):
	case !deployment.DeletionTimestamp.IsZero():
		err = r.reconcileDelete(ctx, deployment)
	default:
		result, err = r.reconcile(ctx, deployment, cluster, helper)
	}
	conditions.Set(deployment, contract.PausedCondition(cluster, deployment))
	unwritten, patchErr := r.write(ctx, helper, before, deployment, err != nil)
	if err = errors.Join(err, patchErr); err != nil {
		return ctrl.Result{}, err
	}
	if result.RequeueAfter == 0 || unwritten > 0 && unwritten < result.RequeueAfter {
		result.RequeueAfter = unwritten
	}
	return result, nil
}

// write stores the deployment. Counters that rise may wait, for the result's time; nothing else may.
func (r *Reconciler) write(ctx context.Context, helper *patch.Helper, before *clusterv1.MachineDeploymentStatus, deployment *clusterv1.MachineDeployment, failed bool) (time.Duration, error) {
	if failed || !deployment.DeletionTimestamp.IsZero() || before.ObservedGeneration != deployment.Status.ObservedGeneration ||
		ptr.Deref(deployment.Status.AvailableReplicas, 0) < ptr.Deref(before.AvailableReplicas, 0) {
		return 0, r.news.PatchNow(ctx, helper, deployment)
	}
	return r.news.Patch(ctx, helper, deployment)
}

// reconcile brings the sets of a deployment that stays to what it asks for. It leaves the status in deployment, for the
// caller to write.
func (r *Reconciler) reconcile(ctx context.Context, deployment *clusterv1.MachineDeployment, cluster *clusterv1.Cluster, helper *patch.Helper) (ctrl.Result, error) {
	before, err := r.replicasBefore(ctx, deployment)
	if err != nil {
		return ctrl.Result{}, err
	}
	unset := setDefaults(deployment, before)
	if cluster != nil {
		if err := controllerutil.SetOwnerReference(cluster, deployment, r.Client.Scheme()); err != nil {
			return ctrl.Result{}, fmt.Errorf("make Cluster %q an owner of MachineDeployment %q: %w", cluster.Name, client.ObjectKeyFromObject(deployment), err)
		}
	}
	capacityErr := r.annotateCapacity(ctx, deployment)
	// Stored before the first set is: the finalizer guards it and the defaults select it.
	if err := helper.Patch(ctx, deployment); err != nil {
		return ctrl.Result{}, err
	}

	s, p, err := r.decide(ctx, deployment)
	if err != nil {
		return ctrl.Result{}, err
	}
	seen, actErr := r.act(ctx, s, p)
	seen.unset, seen.failed = unset, actErr
	setStatus(deployment, seen)
	// Nothing happens at the time of spec.rollout.after that could be watched.
	left := max(deployment.Spec.Rollout.After.Sub(s.now), 0)
	return ctrl.Result{RequeueAfter: left}, errors.Join(capacityErr, actErr)
}

// decide plans on the sets that the cache holds. A change of their sizes is decided again on those that the API server
// holds: a cache that has not yet seen our last step would repeat it on top.
func (r *Reconciler) decide(ctx context.Context, deployment *clusterv1.MachineDeployment) (snapshot, plan, error) {
	s, err := r.snapshot(ctx, r.Client, deployment)
	if err != nil {
		return s, plan{}, err
	}
	p := makePlan(s)
	if !p.scales {
		return s, p, nil
	}
	if s, err = r.snapshot(ctx, r.Live, deployment); err != nil {
		return s, plan{}, err
	}
	return s, makePlan(s), nil
}

// act carries out the plan and returns the sets there are afterwards. It writes the deployment's revision in memory.
func (r *Reconciler) act(ctx context.Context, s snapshot, p plan) (observation, error) {
	seen := observation{sets: s.sets, machines: s.all(), now: s.now}
	for _, set := range p.adopt {
		if err := r.adopt(ctx, s.deployment, set); err != nil {
			return seen, err
		}
		seen.sets = append(seen.sets, set)
	}
	if p.create != nil {
		if err := r.create(ctx, s.deployment, p.create); err != nil {
			return seen, err
		}
		seen.sets = append(seen.sets, p.create)
	}
	for _, set := range p.update {
		if err := r.update(ctx, s.deployment, seen.sets, set); err != nil {
			return seen, err
		}
	}
	if err := r.remove(ctx, s.deployment, p.remove, "Deleted MachineSet %q, which the history is too long for"); err != nil {
		return seen, err
	}
	if p.revision > 0 {
		metav1.SetMetaDataAnnotation(&s.deployment.ObjectMeta, clusterv1.RevisionAnnotation, strconv.FormatInt(p.revision, 10))
	}
	return seen, nil
}

// create stores a new set. A try before this one, whose set the API server did not show yet, had the same name: then
// this one fails, and the next sees it. Applying over it could undo a step.
func (r *Reconciler) create(ctx context.Context, deployment *clusterv1.MachineDeployment, set *clusterv1.MachineSet) error {
	if err := r.Client.Create(ctx, set, client.FieldOwner(fieldOwner)); err != nil {
		return fmt.Errorf("create MachineSet %q: %w", client.ObjectKeyFromObject(set), err)
	}
	r.Recorder.Eventf(deployment, set, corev1.EventTypeNormal, "SuccessfulCreate", "Create", "Created MachineSet %q with %d replicas", set.Name, *set.Spec.Replicas)
	return nil
}

// update writes one set as it is to be, in one patch.
func (r *Reconciler) update(ctx context.Context, deployment *clusterv1.MachineDeployment, sets []*clusterv1.MachineSet, want *clusterv1.MachineSet) error {
	i := slices.IndexFunc(sets, func(set *clusterv1.MachineSet) bool { return set.UID == want.UID })
	from, to := ptr.Deref(sets[i].Spec.Replicas, 0), ptr.Deref(want.Spec.Replicas, 0)
	if err := patch.New(sets[i], r.Client).Patch(ctx, want); err != nil {
		return err
	}
	if from != to {
		r.Recorder.Eventf(deployment, want, corev1.EventTypeNormal, "SuccessfulScale", "Scale", "Scaled MachineSet %q from %d to %d replicas", want.Name, from, to)
	}
	return nil
}

func (r *Reconciler) adopt(ctx context.Context, deployment *clusterv1.MachineDeployment, set *clusterv1.MachineSet) error {
	helper := patch.New(set, r.Client)
	if err := controllerutil.SetControllerReference(deployment, set, r.Client.Scheme()); err != nil {
		return fmt.Errorf("adopt MachineSet %q: %w", client.ObjectKeyFromObject(set), err)
	}
	if err := helper.Patch(ctx, set); err != nil {
		return fmt.Errorf("adopt: %w", err)
	}
	r.Recorder.Eventf(deployment, set, corev1.EventTypeNormal, "SuccessfulAdopt", "Adopt", "Adopted MachineSet %q", set.Name)
	return nil
}

// reconcileDelete deletes the sets of a deployment and lets the deployment go when the last of them is gone.
func (r *Reconciler) reconcileDelete(ctx context.Context, deployment *clusterv1.MachineDeployment) error {
	s, err := r.snapshot(ctx, r.Client, deployment)
	if err != nil {
		return err
	}
	if len(s.sets) == 0 {
		// Only the API server knows that none is left.
		if s, err = r.snapshot(ctx, r.Live, deployment); err != nil {
			return err
		}
	}
	setStatus(deployment, observation{sets: s.sets, machines: s.all(), now: s.now})
	if len(s.sets) == 0 {
		controllerutil.RemoveFinalizer(deployment, clusterv1.MachineDeploymentFinalizer)
	}
	return r.remove(ctx, deployment, makePlan(s).remove, "Deleted MachineSet %q")
}

func (r *Reconciler) remove(ctx context.Context, deployment *clusterv1.MachineDeployment, sets []*clusterv1.MachineSet, event string) error {
	for _, set := range sets {
		err := r.Client.Delete(ctx, set, client.Preconditions{UID: &set.UID})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete MachineSet %q: %w", client.ObjectKeyFromObject(set), err)
		}
		r.Recorder.Eventf(deployment, set, corev1.EventTypeNormal, "SuccessfulDelete", "Delete", event, set.Name)
	}
	return nil
}

// clusterOf returns the Cluster of a deployment, nil when there is none.
func (r *Reconciler) clusterOf(ctx context.Context, deployment *clusterv1.MachineDeployment) (*clusterv1.Cluster, error) {
	cluster := &clusterv1.Cluster{}
	key := client.ObjectKey{Namespace: deployment.Namespace, Name: deployment.Spec.ClusterName}
	switch err := r.Client.Get(ctx, key, cluster); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("get Cluster %q of MachineDeployment %q: %w", key, client.ObjectKeyFromObject(deployment), err)
	}
	return cluster, nil
}
