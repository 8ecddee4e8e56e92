package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// concurrency is how many requests are under way at once: enough to hide the
// way to a distant cluster, few enough for its priority and fairness.
const concurrency = 8

// snapshot reads all that Decide needs. It writes nothing.
func (e *Engine) snapshot(ctx context.Context, set Set) (Snapshot, error) {
	desired, err := set.prepare()
	if err != nil {
		return Snapshot{}, err
	}
	_, parent, err := e.parent(ctx, set.Name)
	if err != nil {
		return Snapshot{}, err
	}
	snapshot := Snapshot{Parent: parent, Objects: make([]ObjectState, len(desired)), Leavers: map[ID]*metav1.PartialObjectMetadata{}}
	coming := comingWith(desired)
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(concurrency)
	for i, object := range desired {
		group.Go(func() error {
			state, err := e.objectState(groupCtx, object, coming)
			snapshot.Objects[i] = state
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return Snapshot{}, fmt.Errorf("compare add-on %s with the cluster: %w", set.Name, err)
	}
	if parent == nil {
		return snapshot, nil
	}
	for _, member := range slices.Concat(parent.Members, parent.Retained) {
		if slices.ContainsFunc(desired, func(o *unstructured.Unstructured) bool { return IDOf(o) == member.ID }) {
			continue
		}
		live := &metav1.PartialObjectMetadata{}
		found, err := e.get(ctx, member.ID, live)
		if err != nil {
			return Snapshot{}, fmt.Errorf("read %s of the last inventory of %s: %w", member.Full(), set.Name, err)
		}
		if !found {
			live = nil
		}
		snapshot.Leavers[member.ID] = live
	}
	return snapshot, nil
}

// coming holds what others of the set need and the set brings along.
type coming struct {
	kinds      []schema.GroupKind
	namespaces []string
}

func comingWith(objects []*unstructured.Unstructured) coming {
	c := coming{kinds: definedKinds(objects)}
	for _, object := range objects {
		if IDOf(object).GroupKind() == namespaceKind {
			c.namespaces = append(c.namespaces, object.GetName())
		}
	}
	return c
}

// objectState reads one object and asks the server what applying ours would make of it.
func (e *Engine) objectState(ctx context.Context, desired *unstructured.Unstructured, coming coming) (ObjectState, error) {
	for try := 1; ; try++ {
		state, err := e.tryObject(ctx, desired, coming)
		if !errors.Is(err, errMoved) || try == adoptTries {
			return state, err
		}
	}
}

// errMoved says that an object was written between two questions about it.
var errMoved = errors.New("somebody writes it all the time: try again when that is over")

func (e *Engine) tryObject(ctx context.Context, desired *unstructured.Unstructured, coming coming) (ObjectState, error) {
	state := ObjectState{Desired: desired}
	id := IDOf(desired)
	mapping, err := e.Client.RESTMapper().RESTMapping(id.GroupKind(), desired.GroupVersionKind().Version)
	switch {
	case meta.IsNoMatchError(err) && slices.Contains(coming.kinds, id.GroupKind()):
		return state, nil
	case meta.IsNoMatchError(err):
		state.Refused = fmt.Errorf("the cluster does not serve kind %s of %s: install what defines it first", id.Kind, desired.GetAPIVersion())
		return state, nil
	case err != nil:
		return state, err
	}
	namespaced := mapping.Scope.Name() == meta.RESTScopeNameNamespace
	if namespaced && id.Namespace == "" {
		state.Refused = fmt.Errorf("it names no namespace: the bundle has to")
		return state, nil
	}

	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(desired.GroupVersionKind())
	if err := e.Client.Get(ctx, client.ObjectKeyFromObject(desired), live); err == nil {
		state.Live = live
	} else if !apierrors.IsNotFound(err) {
		return state, fmt.Errorf("read %s: %w", id.Full(), err)
	}

	state.Merged, err = e.dryRun(ctx, desired, false)
	if state.Conflicts = conflictsIn(err); state.Conflicts != nil {
		state.Merged, err = e.dryRun(ctx, desired, true)
	}
	if err == nil && state.Live != nil {
		if state.Merged, err = e.foresee(ctx, state.Live, state.Merged); apierrors.IsConflict(err) {
			return state, fmt.Errorf("try %s: %w", id.Full(), errMoved)
		}
	}
	switch {
	case err == nil:
	case apierrors.IsNotFound(err) && slices.Contains(coming.namespaces, id.Namespace):
		// The server does not look further until the namespace is there.
	case isRefusal(err):
		state.Refused = refusal(err)
	default:
		return state, fmt.Errorf("try %s: %w", id.Full(), err)
	}
	return state, nil
}

func (e *Engine) dryRun(ctx context.Context, desired *unstructured.Unstructured, force bool) (*unstructured.Unstructured, error) {
	merged := desired.DeepCopy()
	if err := e.serverSideApply(ctx, merged, force, client.DryRunAll); err != nil {
		return nil, err
	}
	return merged, nil
}

// serverSideApply applies an object and leaves the outcome in it.
func (e *Engine) serverSideApply(ctx context.Context, object *unstructured.Unstructured, force bool, extra ...client.ApplyOption) error {
	options := append([]client.ApplyOption{client.FieldOwner(FieldManager)}, extra...)
	if force {
		options = append(options, client.ForceOwnership)
	}
	return e.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), options...)
}

// get reads an object into one of any form and tells whether it, and its kind, is there.
func (e *Engine) get(ctx context.Context, id ID, into client.Object) (bool, error) {
	mapping, err := e.Client.RESTMapper().RESTMapping(id.GroupKind())
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	into.GetObjectKind().SetGroupVersionKind(mapping.GroupVersionKind)
	err = e.Client.Get(ctx, client.ObjectKey{Namespace: id.Namespace, Name: id.Name}, into)
	return err == nil, client.IgnoreNotFound(err)
}

// parent reads the record of a set, raw and parsed; nil when there is none.
func (e *Engine) parent(ctx context.Context, set string) (*unstructured.Unstructured, *Parent, error) {
	live := &unstructured.Unstructured{}
	live.SetAPIVersion("v1")
	live.SetKind("ConfigMap")
	err := e.Client.Get(ctx, client.ObjectKey{Namespace: ParentNamespace, Name: parentName(set)}, live)
	if apierrors.IsNotFound(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read the inventory of %s: %w", set, err)
	}
	parent, err := parseParent(set, live)
	return live, parent, err
}

// isRefusal tells an answer about the object from a failure to ask.
func isRefusal(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) ||
		apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apierrors.IsRequestEntityTooLargeError(err)
}
