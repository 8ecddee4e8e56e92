package addon

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	addonsv1 "github.com/millwright-dev/millwright/api/addons/v1alpha1"
	"github.com/millwright-dev/millwright/internal/bundle"
	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/patch"
)

// +kubebuilder:rbac:groups=addons.millwright.dev,resources=addons,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=addons.millwright.dev,resources=addons/status,verbs=patch
// +kubebuilder:rbac:groups=addons.millwright.dev,resources=addons/finalizers,verbs=update
// +kubebuilder:rbac:groups=addons.millwright.dev,resources=addonreleases,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconciler gives each selected cluster its release.
type Reconciler struct {
	Client client.Client
	// Live reads past the cache: before a release is deleted, no Addon that was just made must be overlooked.
	Live      client.Reader
	Recorder  events.EventRecorder
	Catalogue *bundle.Catalogue
}

// Reconcile brings the releases of one Addon closer to what it asks for, and tells how far it is.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	addon := &addonsv1.Addon{}
	if err := r.Client.Get(ctx, req.NamespacedName, addon); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	helper := patch.New(addon, r.Client)
	if addon.DeletionTimestamp.IsZero() && controllerutil.AddFinalizer(addon, addonsv1.AddonFinalizer) {
		// Stored before the first release, which the Addon must not leave behind.
		if err := helper.Patch(ctx, addon); err != nil {
			return ctrl.Result{}, err
		}
	}
	s, err := r.snapshot(ctx, addon)
	if err != nil {
		return ctrl.Result{}, err
	}
	p := decide(s)
	actErr := r.act(ctx, s, &p)
	before := conditions.Get(addon, addonsv1.AddonRolledOutCondition).DeepCopy()
	setStatus(addon, s, &p)
	if !addon.DeletionTimestamp.IsZero() && p.left == 0 && actErr == nil {
		controllerutil.RemoveFinalizer(addon, addonsv1.AddonFinalizer)
	}
	if err := errors.Join(actErr, helper.Patch(ctx, addon)); err != nil {
		return ctrl.Result{}, err
	}
	r.tell(addon, before)
	return ctrl.Result{}, nil
}

// snapshot reads what a plan is made from.
func (r *Reconciler) snapshot(ctx context.Context, addon *addonsv1.Addon) (*snapshot, error) {
	s := &snapshot{addon: addon}
	inNamespace := client.InNamespace(addon.Namespace)
	clusters := &clusterv1.ClusterList{}
	if err := r.Client.List(ctx, clusters, inNamespace); err != nil {
		return nil, fmt.Errorf("list the Clusters for Addon %q: %w", addon.Name, err)
	}
	s.clusters = clusters.Items
	addons := &addonsv1.AddonList{}
	if err := r.Client.List(ctx, addons, inNamespace, client.MatchingFields{indexBundle: addon.Spec.Bundle}); err != nil {
		return nil, fmt.Errorf("list the Addons beside %q: %w", addon.Name, err)
	}
	s.rivals = addons.Items
	releases := &addonsv1.AddonReleaseList{}
	if err := r.Client.List(ctx, releases, inNamespace, client.MatchingFields{indexBundle: addon.Spec.Bundle}); err != nil {
		return nil, fmt.Errorf("list the AddonReleases of Addon %q: %w", addon.Name, err)
	}
	s.releases = releases.Items
	_, err := r.Catalogue.Addon(addon.Spec.Bundle)
	s.unknown = err != nil
	return s, nil
}

// act carries a plan out. One failure does not keep the others waiting.
func (r *Reconciler) act(ctx context.Context, s *snapshot, p *plan) error {
	var failures []error
	for _, release := range p.adopt {
		changed := release.DeepCopy()
		own(changed, s.addon)
		from := addonOf(release)
		if err := r.patch(ctx, release, changed); err != nil {
			failures = append(failures, err)
			continue
		}
		r.Recorder.Eventf(s.addon, release, corev1.EventTypeNormal, "Adopted", "Adopt", "AddonRelease %q is taken over from Addon %q, its objects stay", release.Name, from)
	}
	for _, cluster := range p.create {
		// The name follows from the cluster and the bundle: a second try finds the first.
		if err := r.Client.Create(ctx, newRelease(s.addon, cluster)); err != nil && !apierrors.IsAlreadyExists(err) {
			failures = append(failures, fmt.Errorf("create the AddonRelease of Addon %q on cluster %q: %w", s.addon.Name, cluster, err))
		}
	}
	for _, release := range p.change {
		changed := release.DeepCopy()
		own(changed, s.addon)
		changed.Spec.ReleaseTemplate = *s.addon.Spec.ReleaseTemplate.DeepCopy()
		if err := r.patch(ctx, release, changed); err != nil {
			failures = append(failures, err)
		}
	}
	return errors.Join(append(failures, r.remove(ctx, s, p.remove)...)...)
}

// patch writes a release only as it was read: another Addon may have it by now.
func (r *Reconciler) patch(ctx context.Context, before, after *addonsv1.AddonRelease) error {
	err := r.Client.Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		// Its news is on the way and makes another plan.
		return nil
	}
	if err != nil {
		return fmt.Errorf("change AddonRelease %q: %w", before.Name, err)
	}
	return nil
}

// remove deletes releases that no Addon wants, after a look past the cache at who may want them.
func (r *Reconciler) remove(ctx context.Context, s *snapshot, releases []*addonsv1.AddonRelease) []error {
	if len(releases) == 0 {
		return nil
	}
	live := &addonsv1.AddonList{}
	if err := r.Live.List(ctx, live, client.InNamespace(s.addon.Namespace)); err != nil {
		return []error{fmt.Errorf("list the Addons that may want what Addon %q leaves: %w", s.addon.Name, err)}
	}
	now := *s
	now.rivals = live.Items
	var failures []error
	for _, release := range now.unwanted() {
		preconditions := client.Preconditions{UID: ptr.To(release.UID), ResourceVersion: ptr.To(release.ResourceVersion)}
		err := r.Client.Delete(ctx, release, preconditions, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			failures = append(failures, fmt.Errorf("delete AddonRelease %q: %w", release.Name, err))
		}
	}
	return failures
}

// tell makes an event of a rollout that begins, halts or ends.
func (r *Reconciler) tell(addon *addonsv1.Addon, before *metav1.Condition) {
	after := conditions.Get(addon, addonsv1.AddonRolledOutCondition)
	if after == nil || before != nil && before.Reason == after.Reason {
		return
	}
	kind := corev1.EventTypeNormal
	if after.Reason == addonsv1.HaltedReason || after.Reason == addonsv1.UnknownBundleReason {
		kind = corev1.EventTypeWarning
	}
	message := after.Message
	if message == "" {
		message = fmt.Sprintf("%d clusters ask for it", ptr.Deref(addon.Status.Clusters, 0))
	}
	r.Recorder.Eventf(addon, nil, kind, after.Reason, "RollOut", "%s", message)
}
