package upgrade

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	addonsv1 "github.com/millwright-dev/millwright/api/addons/v1alpha1"
	lifecyclev1 "github.com/millwright-dev/millwright/api/lifecycle/v1alpha1"
	"github.com/millwright-dev/millwright/internal/bundle"
	"github.com/millwright-dev/millwright/internal/contract"
	"github.com/millwright-dev/millwright/internal/contract/watches"
	"github.com/millwright-dev/millwright/internal/patch"
	"github.com/millwright-dev/millwright/internal/workload"
)

// +kubebuilder:rbac:groups=lifecycle.millwright.dev,resources=clusterupgrades,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=lifecycle.millwright.dev,resources=clusterupgrades/status,verbs=patch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters;machinedeployments,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machines;machinesets,verbs=get;list;watch
// +kubebuilder:rbac:groups=controlplane.cluster.x-k8s.io,resources=kubeadmcontrolplanes,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=vspheremachinetemplates,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=addons.millwright.dev,resources=addonreleases,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// fieldOwner is the name under which objects are written.
const fieldOwner = "millwright-upgrade"

// Images tells which machine images there are, where an infrastructure provider can.
type Images interface {
	// Names lists the names of the images that machines of a template could be made of; nil without an error where that
	// is not known.
	Names(ctx context.Context, cluster *clusterv1.Cluster, machineTemplate *unstructured.Unstructured) ([]string, error)
}

// Reconciler carries out ClusterUpgrades.
type Reconciler struct {
	Client client.Client
	// Live reads past the cache: what nothing refers to is decided on what the API server holds.
	Live     client.Reader
	Workload *workload.Pool
	Recorder events.EventRecorder
	// Images may be nil.
	Images Images
	// Catalogue tells which versions of add-ons do for which Kubernetes versions.
	Catalogue *bundle.Catalogue
	Now       func() time.Time

	resolver *contract.Resolver
	watcher  *watches.Watcher
}

// Reconcile takes the next step of one upgrade and tells its state in its status.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	u := &lifecyclev1.ClusterUpgrade{}
	if err := r.Client.Get(ctx, req.NamespacedName, u); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	cluster := &clusterv1.Cluster{}
	key := client.ObjectKey{Namespace: u.Namespace, Name: u.Spec.ClusterName}
	err := r.Client.Get(ctx, key, cluster)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("get Cluster %q of ClusterUpgrade %q: %w", key, req.NamespacedName, err)
	}
	helper := patch.New(u, r.Client)
	if apierrors.IsNotFound(err) {
		controllerutil.RemoveFinalizer(u, lifecyclev1.ClusterUpgradeFinalizer)
		if u.DeletionTimestamp.IsZero() && !u.Status.Phase.Over() {
			setStatus(u, decision{phase: lifecyclev1.UpgradePending, reason: lifecyclev1.ClusterNotFoundReason,
				message: fmt.Sprintf("there is no Cluster %q in namespace %q", key.Name, key.Namespace), steps: u.Status.Steps}, nil, r.Now())
		}
		return ctrl.Result{}, helper.Patch(ctx, u)
	}
	if !u.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.release(ctx, u, cluster, helper)
	}
	if controllerutil.AddFinalizer(u, lifecyclev1.ClusterUpgradeFinalizer) {
		// Stored before anything is halted, which it must outlive.
		if err := helper.Patch(ctx, u); err != nil {
			return ctrl.Result{}, err
		}
	}
	return r.reconcile(ctx, u, cluster, helper)
}

func (r *Reconciler) reconcile(ctx context.Context, u *lifecyclev1.ClusterUpgrade, cluster *clusterv1.Cluster, helper *patch.Helper) (ctrl.Result, error) {
	if u.Status.Phase.Over() {
		if u.Status.ObservedGeneration == u.Generation || u.Status.Phase == lifecyclev1.UpgradeAborted {
			return ctrl.Result{}, nil
		}
		// Whoever keeps one object a cluster, in Git, changes its version for the next upgrade.
		u.Status = lifecyclev1.ClusterUpgradeStatus{Conditions: u.Status.Conditions}
	}
	s, err := r.snapshot(ctx, u, cluster)
	if err != nil {
		return ctrl.Result{}, err
	}
	d := decide(s)
	if d.phase == lifecyclev1.UpgradeRunning && u.Status.StartTime == nil {
		// Told before it is done: after a crash, what began is known to have begun.
		setStatus(u, d, findings(s), s.now)
		if err := helper.Patch(ctx, u); err != nil {
			return ctrl.Result{}, err
		}
	}
	actErr := r.act(ctx, s, d)
	setStatus(u, d, findings(s), s.now)
	if actErr != nil {
		u.Status.Message = actErr.Error()
	}
	if err := errors.Join(actErr, helper.Patch(ctx, u)); err != nil {
		return ctrl.Result{}, err
	}
	if d.wake.IsZero() {
		return ctrl.Result{}, nil
	}
	// A window, a machine's deadline or a preflight: nothing that could be watched happens then.
	return ctrl.Result{RequeueAfter: max(d.wake.Sub(s.now), time.Second)}, nil
}

// act writes what was decided. Each write is one of an object's whole step, so that a crash between two leaves only what
// the next reconcile sees and goes on from.
func (r *Reconciler) act(ctx context.Context, s snapshot, d decision) error {
	for _, name := range d.resume {
		if err := r.edit(ctx, s, name, resumeObject); err != nil {
			return err
		}
	}
	for _, name := range d.arrived {
		if err := r.editRelease(ctx, s, name, func(release *addonsv1.AddonRelease) { annotate(release, lifecyclev1.BeforeAnnotation, "") }); err != nil {
			return err
		}
	}
	for _, h := range d.holds {
		if err := r.holdRelease(ctx, s, h); err != nil {
			return err
		}
		if h.moves {
			r.Recorder.Eventf(s.upgrade, s.objects.Cluster, corev1.EventTypeNormal, "StepStarted", "Upgrade", "Moved add-on %q to %s", h.name, h.version)
		}
	}
	for _, m := range d.moves {
		if err := r.move(ctx, s, m); err != nil {
			return err
		}
	}
	for _, name := range d.halt {
		if err := r.edit(ctx, s, name, haltObject(s.upgrade.Name)); err != nil {
			return err
		}
	}
	for _, name := range d.undo {
		if err := r.edit(ctx, s, name, undoObject); err != nil {
			return err
		}
		r.Recorder.Eventf(s.upgrade, nil, corev1.EventTypeWarning, "RolledBack", "RollBack", "MachineDeployment %q gets back what it had before the upgrade", name)
	}
	for _, name := range d.forget {
		if err := r.edit(ctx, s, name, forgetObject); err != nil {
			return err
		}
	}
	if d.phase.Over() && !s.upgrade.Status.Phase.Over() {
		if err := r.remember(ctx, s, d); err != nil {
			return err
		}
		r.Recorder.Eventf(s.upgrade, s.objects.Cluster, corev1.EventTypeNormal, string(d.phase), "Upgrade", "%s", d.message)
	}
	if d.collect {
		return r.collect(ctx, s)
	}
	return nil
}

// move brings an object to a version and a template, in one write that also keeps what it had.
func (r *Reconciler) move(ctx context.Context, s snapshot, m move) error {
	if m.topology {
		stored := s.objects.Cluster.DeepCopy()
		s.objects.Cluster.Spec.Topology.Version = m.version
		if err := r.Client.Patch(ctx, s.objects.Cluster, optimistic(stored), client.FieldOwner(fieldOwner)); err != nil {
			return fmt.Errorf("set spec.topology.version of Cluster %q: %w", s.objects.Cluster.Name, err)
		}
		return nil
	}
	if err := r.ensureTemplate(ctx, s.objects.Cluster, m.template); err != nil {
		return err
	}
	if err := r.edit(ctx, s, m.name, moveObject(m)); err != nil {
		return err
	}
	what := "the control plane"
	if m.name != "" {
		what = fmt.Sprintf("MachineDeployment %q", m.name)
	}
	r.Recorder.Eventf(s.upgrade, s.objects.Cluster, corev1.EventTypeNormal, "StepStarted", "Upgrade", "Moved %s to %s with the machine template %q", what, m.version, m.template.name)
	return nil
}

// release lets an upgrade go that is deleted: what it halted goes on, and what it moved keeps no trace of it.
func (r *Reconciler) release(ctx context.Context, u *lifecyclev1.ClusterUpgrade, cluster *clusterv1.Cluster, helper *patch.Helper) error {
	objects, err := r.objects(ctx, cluster)
	if err != nil {
		return err
	}
	s := snapshot{upgrade: u, objects: objects, now: r.Now()}
	if s.releases, err = r.releases(ctx, cluster); err != nil {
		return err
	}
	var d decision
	d.letAddonsGo(s)
	for _, h := range d.holds {
		if err := r.holdRelease(ctx, s, h); err != nil {
			return err
		}
	}
	for _, o := range s.objectsToMove() {
		if o.haltedBy() != u.Name && o.before() == nil {
			continue
		}
		err := r.edit(ctx, s, o.name(), func(o object) {
			if o.haltedBy() == u.Name {
				resumeObject(o)
			}
			forgetObject(o)
		})
		if err != nil {
			return err
		}
	}
	controllerutil.RemoveFinalizer(u, lifecyclev1.ClusterUpgradeFinalizer)
	return helper.Patch(ctx, u)
}

// optimistic makes a patch of the difference that the API server refuses where somebody changed the object since.
func optimistic(before client.Object) client.Patch {
	return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
}
