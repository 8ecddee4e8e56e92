package apply

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// defaultEstablishTimeout is how long a CRD or Namespace may take to be usable. The
// server needs well under a second.
const defaultEstablishTimeout = time.Minute

// Engine plans and carries out sets on one cluster.
type Engine struct {
	Client client.WithWatch
	Policy Policy
	// HealthTimeout bounds the wait for health; zero waits as long as the context lasts.
	HealthTimeout time.Duration
	// EstablishTimeout bounds the wait for CRDs and Namespaces to be usable; a minute when zero.
	EstablishTimeout time.Duration
	// Done is called with each object that has been dealt with, in the order of
	// the set, and what was done; may be nil.
	Done func(ID, Action)
	// Unhealthy is called while waiting whenever what is waited for changes; may be nil.
	Unhealthy func([]Health)
	// Check tells whether an object that is healthy by its status is so by the
	// add-on's own rules, and why not; may be nil.
	Check func(ID, *unstructured.Unstructured) (ok bool, why string)
	// Now tells the time of a revision; time.Now when nil.
	Now func() time.Time
}

// Plan reads the cluster and decides. It writes nothing; what it returns is what Apply will do.
func (e *Engine) Plan(ctx context.Context, set Set) (*Plan, error) {
	snapshot, err := e.snapshot(ctx, set)
	if err != nil {
		return nil, err
	}
	return Decide(set, snapshot, e.Policy)
}

// Apply carries a plan out: the superset into the record, definitions, the rest,
// custom resources; then, when something is to be pruned or wait is set, it waits
// until the set is healthy; then it prunes and writes the final record. A plan
// without a change costs no write. What fails half way is found by the next Plan.
func (e *Engine) Apply(ctx context.Context, plan *Plan, wait bool) error {
	applied, err := e.carryOut(ctx, plan)
	if err != nil {
		return err
	}
	return e.settle(ctx, plan, applied, wait)
}

// carryOut does all of a plan that does not wait for health, and returns the objects as they are then.
func (e *Engine) carryOut(ctx context.Context, plan *Plan) (map[ID]*unstructured.Unstructured, error) {
	if plan.Changed() {
		if err := e.writeParent(ctx, plan.superset()); err != nil {
			return nil, err
		}
	}
	applied := map[ID]*unstructured.Unstructured{}
	for stage := range stageCount {
		if err := e.applyStage(ctx, plan, stage, applied); err != nil {
			return nil, err
		}
	}
	return applied, e.prune(ctx, plan, true)
}

// settle waits for health where that is asked for or something is to be pruned,
// prunes, and writes what is then in the set. A set that is not healthy in time is
// recorded too: as applied, unless objects of the version before are still there.
func (e *Engine) settle(ctx context.Context, plan *Plan, applied map[ID]*unstructured.Unstructured, wait bool) error {
	prunes := plan.Count(ActionPrune) > 0
	var err error
	if wait || prunes {
		err = e.waitHealthy(ctx, plan, applied)
	}
	if err == nil {
		err = e.prune(ctx, plan, false)
	}
	if err == nil {
		// Cut short before the record says that all is done: the next install has to.
		err = ctx.Err()
	}
	if ctx.Err() != nil {
		return err
	}
	return errors.Join(err, e.writeParent(ctx, plan.final(applied, err == nil || !prunes, e.now())))
}

func (e *Engine) applyStage(ctx context.Context, plan *Plan, stage stage, applied map[ID]*unstructured.Unstructured) error {
	changes := plan.stage(stage)
	objects := make([]*unstructured.Unstructured, len(changes))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(concurrency)
	for i, change := range changes {
		if change.Action == ActionUnchanged {
			objects[i] = change.merged
			continue
		}
		group.Go(func() error {
			object, err := e.applyOne(groupCtx, change)
			if err != nil {
				return fmt.Errorf("apply %s: %w", change.ID.Full(), err)
			}
			objects[i] = object
			return nil
		})
	}
	err := group.Wait()
	for i, change := range changes {
		if objects[i] != nil {
			applied[change.ID] = objects[i]
			e.done(change.ID, change.Action)
		}
	}
	if err != nil {
		return fmt.Errorf("add-on %s is half applied: install it again: %w", plan.Set.Name, err)
	}
	if stage != stageDefinitions || len(objects) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, e.establishTimeout())
	defer cancel()
	if err := e.waitCurrent(ctx, objects, nil); err != nil {
		return err
	}
	// The kinds that the CRDs define were not served when the mapper last looked.
	meta.MaybeResetRESTMapper(e.Client.RESTMapper())
	return nil
}

func (e *Engine) waitHealthy(ctx context.Context, plan *Plan, applied map[ID]*unstructured.Unstructured) error {
	if e.HealthTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, e.HealthTimeout)
		defer cancel()
	}
	objects := make([]*unstructured.Unstructured, 0, len(plan.Changes))
	for _, change := range plan.Changes {
		objects = append(objects, applied[change.ID])
	}
	err := e.waitCurrent(ctx, objects, e.Unhealthy)
	var late *NotHealthyError
	if errors.As(err, &late) {
		late.Set, late.After = plan.Set.Name, e.HealthTimeout
		late.NotPruned = plan.Count(ActionPrune)
	}
	return err
}

// applyOne brings one object to what the plan says and returns it as it is then.
func (e *Engine) applyOne(ctx context.Context, change Change) (*unstructured.Unstructured, error) {
	if change.Action == ActionRecreate {
		if err := e.deleteAndWait(ctx, change.live); err != nil {
			return nil, err
		}
	} else if len(change.Adopts) > 0 {
		if err := e.adopt(ctx, change); err != nil {
			return nil, err
		}
	}
	object := change.object.DeepCopy()
	return object, e.serverSideApply(ctx, object, change.Force)
}

// prune deletes what the plan says: the early removals, or all others.
func (e *Engine) prune(ctx context.Context, plan *Plan, early bool) error {
	for _, removal := range plan.Removals {
		if removal.early != early {
			continue
		}
		if removal.Action == ActionPrune {
			if err := e.delete(ctx, removal); err != nil {
				return err
			}
		}
		e.done(removal.ID, removal.Action)
	}
	return nil
}

func (e *Engine) establishTimeout() time.Duration {
	if e.EstablishTimeout > 0 {
		return e.EstablishTimeout
	}
	return defaultEstablishTimeout
}

func (e *Engine) now() time.Time {
	if e.Now != nil {
		return e.Now()
	}
	return time.Now()
}

func (e *Engine) done(id ID, action Action) {
	if e.Done != nil {
		e.Done(id, action)
	}
}

// delete removes the very object that was judged: one that was made anew since has another UID.
func (e *Engine) delete(ctx context.Context, removal Removal) error {
	mapping, err := e.Client.RESTMapper().RESTMapping(removal.ID.GroupKind())
	if err != nil {
		return fmt.Errorf("prune %s: %w", removal.ID.Full(), err)
	}
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(mapping.GroupVersionKind)
	object.SetNamespace(removal.ID.Namespace)
	object.SetName(removal.ID.Name)
	err = e.Client.Delete(ctx, object, client.Preconditions{UID: &removal.uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("prune %s: %w", removal.ID.Full(), err)
	}
	return nil
}

// writeParent writes a record unless the live one already says the same.
func (e *Engine) writeParent(ctx context.Context, record *Parent) error {
	want, err := record.object()
	if err != nil {
		return err
	}
	live, _, err := e.parent(ctx, record.Name)
	if err != nil {
		return err
	}
	if sameParent(live, want) {
		return nil
	}
	// Forced: the record is ours alone.
	if err := e.serverSideApply(ctx, want, true); err != nil {
		return fmt.Errorf("write the inventory of %s: %w", record.Name, err)
	}
	return nil
}
