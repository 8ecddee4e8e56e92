package machine

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/lifecycle"
)

// reportUpToDate adds the condition UpToDate to the first report of a Machine of a MachineDeployment. From then on it is
// the MachineSet's to change; its own first word would be a second write of each new Machine.
func (r *Reconciler) reportUpToDate(ctx context.Context, s *snapshot) error {
	if s.reported || !s.machine.DeletionTimestamp.IsZero() {
		return nil
	}
	set, deployment := &clusterv1.MachineSet{}, &clusterv1.MachineDeployment{}
	if found, err := r.controllerOf(ctx, s.machine, "MachineSet", set); !found || err != nil {
		return err
	}
	if found, err := r.controllerOf(ctx, set, "MachineDeployment", deployment); !found || err != nil {
		return err
	}
	conditions.Set(s.machine, lifecycle.UpToDate(set, deployment, s.now))
	return nil
}

// controllerOf reads the controller of an object, if it is of the kind and there.
func (r *Reconciler) controllerOf(ctx context.Context, obj client.Object, kind string, into client.Object) (bool, error) {
	owner := metav1.GetControllerOf(obj)
	if owner == nil || owner.Kind != kind {
		return false, nil
	}
	key := client.ObjectKey{Namespace: obj.GetNamespace(), Name: owner.Name}
	if err := r.Client.Get(ctx, key, into); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return false, nil
		}
		return false, fmt.Errorf("get %s %q: %w", kind, key, err)
	}
	return into.GetUID() == owner.UID, nil
}
