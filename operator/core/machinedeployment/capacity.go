package machinedeployment

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/millwright-dev/millwright/internal/contract"
	"github.com/millwright-dev/millwright/internal/lifecycle"
)

// annotateCapacity tells cluster-autoscaler on a deployment what its infrastructure template says of a node. A template
// that is not there, or not readable, changes nothing: the MachineSets tell of it.
func (r *Reconciler) annotateCapacity(ctx context.Context, deployment *clusterv1.MachineDeployment) error {
	ref := deployment.Spec.Template.Spec.InfrastructureRef
	gvk, err := r.resolver.GVK(ctx, ref.GroupKind())
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	if err := r.watcher.Watch(gvk, r.fromTemplates(ref.GroupKind())); err != nil {
		return err
	}
	template, err := r.resolver.Get(ctx, deployment.Namespace, ref)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the capacity of a node of MachineDeployment %q: %w", client.ObjectKeyFromObject(deployment), err)
	}
	lifecycle.AnnotateCapacity(deployment, lifecycle.ParseCapacity(contract.Capacity(template)))
	return nil
}

// fromTemplates maps infrastructure templates of one kind to the deployments that name them.
func (r *Reconciler) fromTemplates(kind schema.GroupKind) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []reconcile.Request {
		return r.deployments(ctx, obj.GetNamespace(), func(deployment *clusterv1.MachineDeployment) bool {
			ref := deployment.Spec.Template.Spec.InfrastructureRef
			return ref.GroupKind() == kind && ref.Name == obj.GetName()
		})
	})
}
