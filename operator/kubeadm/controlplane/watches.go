package controlplane

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/contract"
	"github.com/millwright-dev/millwright/internal/contract/watches"
	"github.com/millwright-dev/millwright/internal/patch"
	"github.com/millwright-dev/millwright/operator/kubeadm/certificates"
)

// SetupWithManager registers the controller and what it watches: control planes, Machines, Clusters,
// connections to workload clusters, their own Secrets, CRDs and the templates that control planes name. Nodes are seen
// through the conditions of their Machines; static pods and etcd are looked at in intervals (lookAgain).
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, opts controller.Options) error {
	if r.Live == nil {
		r.Live = mgr.GetAPIReader()
	}
	if r.Recorder == nil {
		r.Recorder = mgr.GetEventRecorder("millwright-kubeadm-controlplane")
	}
	if r.Now == nil {
		r.Now = time.Now
	}
	if r.dial == nil {
		r.dial = forwardToMember
	}
	if r.readExpiry == nil {
		r.readExpiry = shakeHands
	}
	r.resolver = &contract.Resolver{Client: r.Client}
	r.certificates = &certificates.Store{Client: r.Client, Live: r.Live, Now: r.Now}
	ofControlPlane := handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), &controlplanev1.KubeadmControlPlane{}, handler.OnlyControllerOwner())
	c, err := ctrl.NewControllerManagedBy(mgr).
		Named("kubeadmcontrolplane").
		WithOptions(opts).
		For(&controlplanev1.KubeadmControlPlane{}, builder.WithPredicates(controlPlaneChanged())).
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(r.fromMachine), builder.WithPredicates(machineChanged())).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.fromCluster), builder.WithPredicates(clusterChanged())).
		Watches(&corev1.Secret{}, ofControlPlane, builder.WithPredicates(onlyDeletions())).
		Watches(contract.CRDMetadata(), handler.EnqueueRequestsFromMapFunc(r.fromCRD)).
		WatchesRawSource(r.Workload.ClusterEventsTo(func(ctx context.Context, cluster client.ObjectKey) []reconcile.Request {
			return r.controlPlanes(ctx, cluster.Namespace, func(cp *controlplanev1.KubeadmControlPlane) bool {
				return cp.Labels[clusterv1.ClusterNameLabel] == cluster.Name
			})
		})).
		Build(r)
	if err != nil {
		return err
	}
	r.watcher = watches.New(c, mgr)
	return nil
}

// controlPlaneChanged leaves out changes of status, which are our own.
func controlPlaneChanged() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, predicate.LabelChangedPredicate{},
		predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
			return !equality.Semantic.DeepEqual(e.ObjectOld.GetOwnerReferences(), e.ObjectNew.GetOwnerReferences())
		}})
}

// onlyDeletions lets through that a Secret of ours is gone: the kubeconfig is made anew, also while nothing else happens
// because the cluster cannot be reached without it.
func onlyDeletions() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		UpdateFunc:  func(event.UpdateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// machineChanged lets through what the plan and the status depend on, but not our own conditions.
func machineChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok1 := e.ObjectOld.(*clusterv1.Machine)
		after, ok2 := e.ObjectNew.(*clusterv1.Machine)
		if !ok1 || !ok2 {
			return true
		}
		for _, condition := range []string{
			clusterv1.MachineReadyCondition, clusterv1.MachineAvailableCondition, clusterv1.MachineNodeHealthyCondition, clusterv1.MachineDeletingCondition,
			clusterv1.MachineHealthCheckSucceededCondition, clusterv1.MachineOwnerRemediatedCondition,
		} {
			if !sameCondition(conditions.Get(before, condition), conditions.Get(after, condition)) {
				return true
			}
		}
		return before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
			before.Status.NodeRef != after.Status.NodeRef ||
			!equality.Semantic.DeepEqual(before.Spec, after.Spec) ||
			!maps.Equal(before.Labels, after.Labels) ||
			!maps.Equal(before.Annotations, after.Annotations) ||
			!equality.Semantic.DeepEqual(before.OwnerReferences, after.OwnerReferences)
	}}
}

func sameCondition(a, b *metav1.Condition) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message
}

func clusterChanged() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok1 := e.ObjectOld.(*clusterv1.Cluster)
		after, ok2 := e.ObjectNew.(*clusterv1.Cluster)
		return !ok1 || !ok2 ||
			before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
			!equality.Semantic.DeepEqual(before.Status.Initialization, after.Status.Initialization) ||
			!equality.Semantic.DeepEqual(before.Status.FailureDomains, after.Status.FailureDomains)
	}})
}

// fromMachine maps a Machine to the control plane that it belongs to. One that is being deleted waits
// for every other Machine of the cluster.
func (r *Reconciler) fromMachine(ctx context.Context, obj client.Object) []reconcile.Request {
	owner := metav1.GetControllerOf(obj)
	return r.controlPlanes(ctx, obj.GetNamespace(), func(cp *controlplanev1.KubeadmControlPlane) bool {
		if cp.Labels[clusterv1.ClusterNameLabel] != obj.GetLabels()[clusterv1.ClusterNameLabel] {
			return false
		}
		_, part := obj.GetLabels()[clusterv1.MachineControlPlaneLabel]
		return !cp.DeletionTimestamp.IsZero() || (part && (owner == nil || owner.UID == cp.UID))
	})
}

func (r *Reconciler) fromCluster(ctx context.Context, obj client.Object) []reconcile.Request {
	return r.controlPlanes(ctx, obj.GetNamespace(), func(cp *controlplanev1.KubeadmControlPlane) bool {
		return cp.Labels[clusterv1.ClusterNameLabel] == obj.GetName()
	})
}

func (r *Reconciler) fromCRD(ctx context.Context, obj client.Object) []reconcile.Request {
	return r.controlPlanes(ctx, metav1.NamespaceAll, func(cp *controlplanev1.KubeadmControlPlane) bool {
		return contract.CRDName(cp.Spec.MachineTemplate.Spec.InfrastructureRef.GroupKind()) == obj.GetName()
	})
}

// fromTemplates maps templates of one kind to the control planes that name them.
func (r *Reconciler) fromTemplates(kind schema.GroupKind) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []reconcile.Request {
		return r.controlPlanes(ctx, obj.GetNamespace(), func(cp *controlplanev1.KubeadmControlPlane) bool {
			ref := cp.Spec.MachineTemplate.Spec.InfrastructureRef
			return ref.GroupKind() == kind && ref.Name == obj.GetName()
		})
	})
}

// controlPlanes returns requests for the control planes of a namespace that concern returns true for.
func (r *Reconciler) controlPlanes(ctx context.Context, namespace string, concerns func(*controlplanev1.KubeadmControlPlane) bool) []reconcile.Request {
	return contract.RequestsFor(ctx, r.Client, &controlplanev1.KubeadmControlPlaneList{}, namespace, concerns)
}

// readTemplate returns the infrastructure template, or a problem that the user can solve. The template
// is watched, and goes with the Cluster.
func (r *Reconciler) readTemplate(ctx context.Context, s *snapshot) (*unstructured.Unstructured, string, error) {
	const field = "spec.machineTemplate.spec.infrastructureRef"
	ref := s.controlPlane.Spec.MachineTemplate.Spec.InfrastructureRef
	gvk, err := r.resolver.GVK(ctx, ref.GroupKind())
	if apierrors.IsNotFound(err) {
		return nil, fmt.Sprintf("%s: kind %s is not known to the API server: install its provider", field, ref.GroupKind()), nil
	}
	if err != nil {
		return nil, "", err
	}
	// Watched before it is read: what is created in between is an event.
	if err := r.watcher.Watch(gvk, r.fromTemplates(ref.GroupKind())); err != nil {
		return nil, "", err
	}
	template, err := r.resolver.Get(ctx, s.controlPlane.Namespace, ref)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Sprintf("%s: %s %q does not exist in namespace %q: create it or name another", field, ref.Kind, ref.Name, s.controlPlane.Namespace), nil
	}
	if err != nil {
		return nil, "", err
	}
	if _, err := contract.FromTemplate(contract.CloneInput{Template: template, Namespace: s.controlPlane.Namespace, Name: ref.Name}); err != nil {
		return nil, fmt.Sprintf("%s: %s", field, err), nil
	}
	helper := patch.New(template, r.Client)
	if err := controllerutil.SetOwnerReference(s.cluster, template, r.Client.Scheme()); err != nil {
		return nil, "", fmt.Errorf("make Cluster %q an owner of %s %q: %w", s.cluster.Name, ref.Kind, ref.Name, err)
	}
	return template, "", helper.Patch(ctx, template)
}
