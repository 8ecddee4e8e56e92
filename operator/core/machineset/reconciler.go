package machineset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/contract"
	"github.com/millwright-dev/millwright/internal/contract/watches"
	"github.com/millwright-dev/millwright/internal/lifecycle"
	"github.com/millwright-dev/millwright/internal/patch"
)

// Kinds of other providers are granted by their own ClusterRoles, which the operator's aggregated role takes in.
//
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machinesets,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machinesets/status;machines/status,verbs=patch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machinesets/finalizers,verbs=update
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machines,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters;machinedeployments,verbs=get;list;watch
// +kubebuilder:rbac:groups=bootstrap.cluster.x-k8s.io,resources=kubeadmconfigs,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=bootstrap.cluster.x-k8s.io,resources=kubeadmconfigtemplates,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=vspheremachines,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=vspheremachinetemplates,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconciler keeps the number of Machines of MachineSets.
type Reconciler struct {
	Client client.Client
	// Live reads past the cache: what is deleted is decided on what the API server holds.
	Live     client.Reader
	Recorder events.EventRecorder

	resolver contract.Resolver
	watcher  *watches.Watcher
	news     *patch.Unhurried
	complete completion
}

// countersDelay is how long counters that rise may go unwritten: they count many machines, and each moves them.
const countersDelay = time.Second

// Reconcile brings one MachineSet to its number of Machines and tells its state in its status.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	set := &clusterv1.MachineSet{}
	if err := r.Client.Get(ctx, req.NamespacedName, set); err != nil {
		if apierrors.IsNotFound(err) {
			r.news.Forget(req.NamespacedName)
			r.complete.forget(req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	before := set.Status.DeepCopy()
	cluster, err := r.clusterOf(ctx, set)
	if err != nil {
		return ctrl.Result{}, err
	}
	helper := patch.New(set, r.Client)
	var result ctrl.Result
	switch {
	case contract.Paused(cluster, set):
	case !set.DeletionTimestamp.IsZero():
		err = r.reconcileDelete(ctx, set)
	default:
		result, err = r.reconcile(ctx, set, cluster, helper)
	}
	conditions.Set(set, contract.PausedCondition(cluster, set))
	unwritten, patchErr := r.write(ctx, helper, before, set, err != nil)
	if err = errors.Join(err, patchErr); err != nil {
		return ctrl.Result{}, err
	}
	if result.RequeueAfter == 0 || unwritten > 0 && unwritten < result.RequeueAfter {
		result.RequeueAfter = unwritten
	}
	return result, nil
}

// write stores the set. Counters that rise may wait, for the result's time; nothing else may.
func (r *Reconciler) write(ctx context.Context, helper *patch.Helper, before *clusterv1.MachineSetStatus, set *clusterv1.MachineSet, failed bool) (time.Duration, error) {
	told := conditions.IsTrue(set, lifecycle.TemplateContentChangedCondition)
	toldBefore := conditions.IsTrue(&clusterv1.MachineSet{Status: *before}, lifecycle.TemplateContentChangedCondition)
	if failed || !set.DeletionTimestamp.IsZero() || before.ObservedGeneration != set.Status.ObservedGeneration || told != toldBefore ||
		ptr.Deref(set.Status.AvailableReplicas, 0) < ptr.Deref(before.AvailableReplicas, 0) {
		return 0, r.news.PatchNow(ctx, helper, set)
	}
	return r.news.Patch(ctx, helper, set)
}

// reconcile brings a set that stays to its number. It leaves the status in set, for the caller to write.
func (r *Reconciler) reconcile(ctx context.Context, set *clusterv1.MachineSet, cluster *clusterv1.Cluster, helper *patch.Helper) (ctrl.Result, error) {
	unset := setDefaults(set)
	if cluster != nil && metav1.GetControllerOf(set) == nil {
		if err := controllerutil.SetOwnerReference(cluster, set, r.Client.Scheme()); err != nil {
			return ctrl.Result{}, fmt.Errorf("make Cluster %q an owner of MachineSet %q: %w", cluster.Name, client.ObjectKeyFromObject(set), err)
		}
	}
	// Stored before the first Machine is: the finalizer guards it and the defaults label it.
	if err := helper.Patch(ctx, set); err != nil {
		return ctrl.Result{}, err
	}

	from, problems, templatesErr := r.readTemplates(ctx, set, cluster)
	deployment, err := r.deploymentOf(ctx, set)
	if err != nil {
		return ctrl.Result{}, err
	}
	unready, preflightErr := r.checkPreflight(ctx, set, cluster)
	s, p, err := r.decide(ctx, snapshot{
		set: set, deployment: deployment, domains: spreadOver(set, cluster), now: time.Now(),
		blocked: slices.Concat(obstacles(set, cluster), problems, unready),
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	seen := observation{machines: s.machines, blocked: s.blocked, unset: unset}
	if len(problems) == 0 {
		seen.templates = []*unstructured.Unstructured{from.bootstrap, from.infrastructure}
	}
	err = r.act(ctx, s, p, from, &seen)
	before := conditions.IsTrue(set, lifecycle.TemplateContentChangedCondition)
	setStatus(set, seen)
	if changed := conditions.Get(set, lifecycle.TemplateContentChangedCondition); !before && changed != nil && changed.Status == metav1.ConditionTrue {
		r.Recorder.Eventf(set, nil, corev1.EventTypeWarning, changed.Reason, "Watch", "%s", changed.Message)
	}
	var result ctrl.Result
	if deployment != nil {
		// At that time Machines are out of date without any event.
		result.RequeueAfter = max(deployment.Spec.Rollout.After.Sub(s.now), 0)
	}
	return result, errors.Join(templatesErr, preflightErr, err)
}

// act carries out the plan and leaves in seen what there is afterwards.
func (r *Reconciler) act(ctx context.Context, s snapshot, p plan, from templates, seen *observation) error {
	for _, machine := range p.adopt {
		if err := r.adopt(ctx, s.set, machine); err != nil {
			return err
		}
		seen.machines = append(seen.machines, machine)
	}
	if err := r.removeMachines(ctx, s.set, p.remove); err != nil {
		return err
	}
	if err := r.remediate(ctx, s.set, p.remediate); err != nil {
		return err
	}
	if err := r.tellUpToDate(ctx, s, seen.machines); err != nil {
		return err
	}
	// Labels that a provider refuses are no reason to make no Machines.
	updateErr := r.updateMachines(ctx, s.set, p.update)
	// What keeps new Machines from being made is no reason to leave one that is there half made.
	if err := r.completeMachines(ctx, s.set, from, p.complete); err != nil {
		seen.blocked = append(seen.blocked, err.Error())
		updateErr = errors.Join(updateErr, err)
	}
	if len(seen.blocked) > 0 {
		return updateErr
	}
	created, err := r.createMachines(ctx, s.set, from, p.create)
	if err != nil {
		seen.blocked = append(seen.blocked, err.Error())
	}
	for _, machine := range created {
		// Its own controller writes it; here only so that the new Machine does not count as unknown until then.
		if s.deployment != nil {
			conditions.Set(machine, lifecycle.UpToDate(s.set, s.deployment, s.now))
		}
		seen.machines = append(seen.machines, machine)
	}
	return errors.Join(updateErr, err)
}

// decide plans on the Machines that the cache holds. A deletion is decided again on those that the API server holds: a
// cache that has not yet seen our last deletions would ask for others.
func (r *Reconciler) decide(ctx context.Context, s snapshot) (snapshot, plan, error) {
	if err := s.readMachines(ctx, r.Client); err != nil {
		return s, plan{}, err
	}
	p := makePlan(s)
	if !p.deletes() {
		return s, p, nil
	}
	if err := s.readMachines(ctx, r.Live); err != nil {
		return s, plan{}, err
	}
	return s, makePlan(s), nil
}

// reconcileDelete deletes the Machines of a set and lets the set go when the last of them is gone.
func (r *Reconciler) reconcileDelete(ctx context.Context, set *clusterv1.MachineSet) error {
	s := snapshot{set: set}
	if err := s.readMachines(ctx, r.Client); err != nil {
		return err
	}
	if len(s.machines) == 0 {
		// Only the API server knows that none is left.
		if err := s.readMachines(ctx, r.Live); err != nil {
			return err
		}
	}
	setStatus(set, observation{machines: s.machines})
	if len(s.machines) == 0 {
		controllerutil.RemoveFinalizer(set, clusterv1.MachineSetFinalizer)
	}
	return r.removeMachines(ctx, set, makePlan(s).remove)
}

func (r *Reconciler) adopt(ctx context.Context, set *clusterv1.MachineSet, machine *clusterv1.Machine) error {
	helper := patch.New(machine, r.Client)
	if err := controllerutil.SetControllerReference(set, machine, r.Client.Scheme()); err != nil {
		return fmt.Errorf("adopt Machine %q: %w", client.ObjectKeyFromObject(machine), err)
	}
	if err := helper.Patch(ctx, machine); err != nil {
		return fmt.Errorf("adopt: %w", err)
	}
	r.Recorder.Eventf(set, machine, corev1.EventTypeNormal, "SuccessfulAdopt", "Adopt", "Adopted Machine %q", machine.Name)
	return nil
}

func (r *Reconciler) removeMachines(ctx context.Context, set *clusterv1.MachineSet, machines []*clusterv1.Machine) error {
	_, err := inBatches(machines, func(machine *clusterv1.Machine) (*clusterv1.Machine, error) {
		err := r.Client.Delete(ctx, machine, client.Preconditions{UID: &machine.UID})
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("delete Machine %q: %w", client.ObjectKeyFromObject(machine), err)
		}
		r.Recorder.Eventf(set, machine, corev1.EventTypeNormal, "SuccessfulDelete", "Delete", "Deleted Machine %q", machine.Name)
		return machine, nil
	})
	return err
}

// tellUpToDate writes the condition UpToDate of Machines, which their owner owns, where it says something else. A new
// Machine without conditions is left to its own controller, whose first report has this one too.
func (r *Reconciler) tellUpToDate(ctx context.Context, s snapshot, machines []*clusterv1.Machine) error {
	if s.deployment == nil {
		return nil
	}
	want := lifecycle.UpToDate(s.set, s.deployment, s.now)
	var stale []*clusterv1.Machine
	for _, machine := range machines {
		have := conditions.Get(machine, want.Type)
		switch {
		case have != nil && have.Status == want.Status && have.Reason == want.Reason && have.Message == want.Message:
		case len(machine.Status.Conditions) == 0:
			conditions.Set(machine, want)
		default:
			stale = append(stale, machine)
		}
	}
	_, err := inBatches(stale, func(machine *clusterv1.Machine) (*clusterv1.Machine, error) {
		helper := patch.New(machine, r.Client)
		conditions.Set(machine, want)
		return machine, client.IgnoreNotFound(helper.Patch(ctx, machine))
	})
	return err
}
