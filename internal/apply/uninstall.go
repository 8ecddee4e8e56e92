package apply

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NotInstalledError says that a cluster has no set of a name.
type NotInstalledError struct {
	Set string
}

func (e *NotInstalledError) Error() string {
	return fmt.Sprintf("add-on %s is not installed by this tool: the cluster has no configmap %s in namespace %s", e.Set, parentName(e.Set), ParentNamespace)
}

// PlanUninstall decides what becomes of each object of an installed set when it
// goes, by the rules of pruning. It writes nothing.
func (e *Engine) PlanUninstall(ctx context.Context, name string, retain func(ID) bool) (*Plan, error) {
	// A set without objects: every member is a leaver. Nothing waits for a successor, so that none is Moved.
	set := Set{Name: name, Retain: retain}
	snapshot, err := e.snapshot(ctx, set)
	if err != nil {
		return nil, err
	}
	if snapshot.Parent == nil {
		return nil, &NotInstalledError{Set: name}
	}
	return Decide(set, snapshot, e.Policy)
}

// Uninstall deletes what the plan of PlanUninstall prunes, then the record.
func (e *Engine) Uninstall(ctx context.Context, plan *Plan) error {
	if err := e.prune(ctx, plan, false); err != nil {
		return err
	}
	return e.deleteParent(ctx, plan.Set.Name)
}

// Orphan takes the set's label off every object of the plan that bears it, and
// deletes the record. The objects stay as they are.
func (e *Engine) Orphan(ctx context.Context, plan *Plan) error {
	for _, removal := range plan.Removals {
		if removal.Action == ActionForget {
			continue
		}
		mapping, err := e.Client.RESTMapper().RESTMapping(removal.ID.GroupKind())
		if err != nil {
			return fmt.Errorf("orphan %s: %w", removal.ID.Full(), err)
		}
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(mapping.GroupVersionKind)
		object.SetNamespace(removal.ID.Namespace)
		object.SetName(removal.ID.Name)
		patch := fmt.Sprintf(`{"metadata":{"uid":%q,"labels":{%q:null}}}`, removal.uid, partOfLabel)
		err = e.Client.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner(FieldManager))
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("orphan %s: %w", removal.ID.Full(), err)
		}
		e.done(removal.ID, ActionRetain)
	}
	return e.deleteParent(ctx, plan.Set.Name)
}

func (e *Engine) deleteParent(ctx context.Context, set string) error {
	parent := &metav1.PartialObjectMetadata{}
	parent.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	parent.SetNamespace(ParentNamespace)
	parent.SetName(parentName(set))
	if err := e.Client.Delete(ctx, parent); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete the inventory of %s: %w", set, err)
	}
	return nil
}
