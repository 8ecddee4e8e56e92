package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// adoptTries bounds how often an adoption is begun again when somebody writes at the same time.
const adoptTries = 5

// adopt makes what installers own the set's. Only ownership moves: no value, and so no pod.
func (e *Engine) adopt(ctx context.Context, change Change) error {
	judged := change.live
	for try := 1; ; try++ {
		err := e.moveOwnership(ctx, judged, change.Adopts)
		if !apierrors.IsConflict(err) {
			return err
		}
		// Kubelets and controllers write status all the time; anything else was not planned for.
		live := &unstructured.Unstructured{}
		found, readErr := e.get(ctx, change.ID, live)
		if readErr != nil {
			return readErr
		}
		if try == adoptTries || !found || !sameObject(judged, live) {
			return fmt.Errorf("somebody changed it at the same time: install again: %w", err)
		}
		judged = live
	}
}

func (e *Engine) moveOwnership(ctx context.Context, live *unstructured.Unstructured, managers []string) error {
	entries, err := adopted(live, managers)
	if err != nil {
		return fmt.Errorf("take over its fields: %w", err)
	}
	// The patch names the resourceVersion that was judged: whoever wrote since is not overruled.
	patch, err := json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/managedFields", "value": entries},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": live.GetResourceVersion()},
	})
	if err != nil {
		return fmt.Errorf("take over its fields: %w", err)
	}
	return e.Client.Patch(ctx, live.DeepCopy(), client.RawPatch(types.JSONPatchType, patch))
}

// foresee makes merged, the outcome of an apply beside other managers, what the
// apply comes to after their fields became the set's. What nobody owns then is
// gone, and the server puts its defaults there.
func (e *Engine) foresee(ctx context.Context, live, merged *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	managers := adoptable(live, e.Policy.TakeFrom)
	if len(managers) == 0 {
		return merged, nil
	}
	rest, err := withoutRelinquished(live, merged, managers)
	if err != nil {
		return nil, err
	}
	outcome := rest.DeepCopy()
	outcome.SetResourceVersion(live.GetResourceVersion())
	err = e.Client.Update(ctx, outcome, client.DryRunAll, client.FieldOwner(FieldManager))
	if apierrors.IsForbidden(err) {
		// Whoever may only patch sees the outcome without the defaults.
		return rest, nil
	}
	return outcome, err
}

// deleteAndWait deletes the very object that was judged and waits until it is gone.
func (e *Engine) deleteAndWait(ctx context.Context, live *unstructured.Unstructured) error {
	ctx, cancel := context.WithTimeout(ctx, e.establishTimeout())
	defer cancel()
	uid := live.GetUID()
	err := e.Client.Delete(ctx, live, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	list := &unstructured.UnstructuredList{}
	gvk := live.GroupVersionKind()
	gvk.Kind += "List"
	list.SetGroupVersionKind(gvk)
	for {
		// The watch begins with the object as it is; one that is gone already is found by reading.
		w, err := e.Client.Watch(ctx, list, client.InNamespace(live.GetNamespace()),
			client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", live.GetName())})
		if err != nil {
			return fmt.Errorf("wait until it is deleted: %w", err)
		}
		current := &metav1.PartialObjectMetadata{}
		found, err := e.get(ctx, IDOf(live), current)
		if err == nil && found && current.UID == uid {
			untilDeleted(w)
		}
		w.Stop()
		switch {
		case err != nil:
			return err
		case !found || current.UID != uid:
			return nil
		case ctx.Err() != nil:
			return errors.New("it is not gone yet: a finalizer holds it: see who removes its finalizers")
		}
		select {
		case <-ctx.Done():
		case <-time.After(firstWatchPause):
		}
	}
}

// untilDeleted reads a watch until an object is deleted or the watch ends.
func untilDeleted(w watch.Interface) {
	for event := range w.ResultChan() {
		if event.Type == watch.Deleted || event.Type == watch.Error {
			return
		}
	}
}
