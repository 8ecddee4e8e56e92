package machinehealthcheck

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/contract"
	"github.com/millwright-dev/millwright/internal/patch"
	"github.com/millwright-dev/millwright/internal/workload"
)

// Remediation templates of foreign API groups are granted by the ClusterRoles that the operator's own aggregates.
//
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machinehealthchecks,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machinehealthchecks/status;machines/status,verbs=patch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machines/finalizers,verbs=update
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machines,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters,verbs=get;list;watch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconciler reconciles MachineHealthChecks.
type Reconciler struct {
	Client   client.Client
	Workload *workload.Pool
	Recorder events.EventRecorder

	resolver *contract.Resolver
	// watch starts to watch a kind of remediation templates or requests.
	watch func(context.Context, schema.GroupKind) error
}

// Reconcile judges the Machines of one check.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	check := &clusterv1.MachineHealthCheck{}
	if err := r.Client.Get(ctx, req.NamespacedName, check); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	cluster, err := r.clusterOf(ctx, check)
	if err != nil {
		return ctrl.Result{}, err
	}
	helper := patch.New(check, r.Client)
	conditions.Set(check, contract.PausedCondition(cluster, check))
	switch {
	case contract.Paused(cluster, check):
		return ctrl.Result{}, helper.Patch(ctx, check)
	case !check.DeletionTimestamp.IsZero(), cluster != nil && !cluster.DeletionTimestamp.IsZero():
		return ctrl.Result{}, nil // What goes is not worth mending.
	}
	setDefaults(check)
	if cluster == nil {
		conditions.Set(check, conditions.Unknown(clusterv1.MachineHealthCheckRemediationAllowedCondition, clusterv1.ObjectDoesNotExistReason,
			"Cluster %q does not exist in namespace %q: create it", check.Spec.ClusterName, check.Namespace))
		return ctrl.Result{}, helper.Patch(ctx, check)
	}
	if err := controllerutil.SetOwnerReference(cluster, check, r.Client.Scheme()); err != nil {
		return ctrl.Result{}, fmt.Errorf("make Cluster %q an owner of MachineHealthCheck %q: %w", cluster.Name, req, err)
	}

	s, err := r.snapshot(ctx, check, cluster)
	if err != nil {
		return ctrl.Result{}, err
	}
	p := makePlan(s)
	before, told := isRestricted(check), saysLeftOut(check)
	setStatus(check, p)
	if err := errors.Join(r.act(ctx, check, p), helper.Patch(ctx, check)); err != nil {
		return ctrl.Result{}, err
	}
	if !before && isRestricted(check) {
		r.Recorder.Eventf(check, nil, corev1.EventTypeWarning, "RemediationRestricted", "Remediate", "%s", p.allowed.Message)
	}
	if p.leftOut != "" && !told {
		r.Recorder.Eventf(check, nil, corev1.EventTypeWarning, "MachinesLeftToOthers", "SelectMachines", "%s", p.leftOut)
	}
	if p.next.IsZero() {
		return ctrl.Result{}, nil
	}
	// No event tells that a timeout has passed.
	return ctrl.Result{RequeueAfter: max(p.next.Sub(s.now), time.Millisecond)}, nil
}

// act tells every Machine its verdict. One that cannot be told keeps no other from being told.
func (r *Reconciler) act(ctx context.Context, check *clusterv1.MachineHealthCheck, p plan) error {
	var errs []error
	for _, v := range p.verdicts {
		errs = append(errs, r.actOn(ctx, check, v))
	}
	return errors.Join(errs...)
}

func (r *Reconciler) actOn(ctx context.Context, check *clusterv1.MachineHealthCheck, v verdict) error {
	machine := v.machine.DeepCopy()
	v.setHealth(machine)
	requestErr := r.remedy(ctx, check, v, machine)
	if sameConditions(v.machine, machine) {
		return requestErr
	}
	err := patch.New(v.machine, r.Client).Patch(ctx, machine)
	if client.IgnoreNotFound(err) != nil {
		return errors.Join(requestErr, fmt.Errorf("tell the verdict of MachineHealthCheck %q: %w", client.ObjectKeyFromObject(check), err))
	}
	r.announce(check, v, machine)
	return requestErr
}

// remedy has the Machine remediated by its owner, or by whoever watches requests of the template's kind.
func (r *Reconciler) remedy(ctx context.Context, check *clusterv1.MachineHealthCheck, v verdict, machine *clusterv1.Machine) error {
	if !check.Spec.Remediation.TemplateRef.IsDefined() {
		setOwnerRemediated(machine, v.remedy)
		return nil
	}
	if v.remedy != keep {
		setOwnerRemediated(machine, withdraw)
	}
	switch {
	case v.remedy == ask:
		return r.ensureRequest(ctx, check, machine)
	case v.health == healthy:
		return r.deleteRequest(ctx, check, machine)
	}
	// A remediation that somebody has begun is not broken off because others are needed too.
	return nil
}

// announce records events of what this reconcile told a Machine for the first time.
func (r *Reconciler) announce(check *clusterv1.MachineHealthCheck, v verdict, after *clusterv1.Machine) {
	turnedFalse := func(conditionType string) bool {
		return conditions.IsFalse(after, conditionType) && !conditions.IsFalse(v.machine, conditionType)
	}
	if turnedFalse(clusterv1.MachineHealthCheckSucceededCondition) {
		r.Recorder.Eventf(after, check, corev1.EventTypeWarning, "MachineMarkedUnhealthy", "CheckHealth", "Machine is unhealthy: %s", v.message)
	}
	if turnedFalse(clusterv1.MachineOwnerRemediatedCondition) || turnedFalse(clusterv1.MachineExternallyRemediatedCondition) {
		remediations.WithLabelValues(v.reason).Inc()
		r.Recorder.Eventf(after, check, corev1.EventTypeNormal, "RemediationRequested", "Remediate", "MachineHealthCheck %s asks for remediation: %s", check.Name, v.message)
	}
}

// sameConditions tells whether two states of a Machine say the same. When and for which generation does not count: a
// verdict is repeated on every event.
func sameConditions(a, b *clusterv1.Machine) bool {
	for _, conditionType := range []string{
		clusterv1.MachineHealthCheckSucceededCondition, clusterv1.MachineOwnerRemediatedCondition, clusterv1.MachineExternallyRemediatedCondition,
	} {
		x, y := conditions.Get(a, conditionType), conditions.Get(b, conditionType)
		if (x == nil) != (y == nil) {
			return false
		}
		if x != nil && (x.Status != y.Status || x.Reason != y.Reason || x.Message != y.Message) {
			return false
		}
	}
	return true
}
