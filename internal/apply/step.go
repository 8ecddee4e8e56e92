package apply

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Outcome is how far a Step came.
type Outcome struct {
	// Record is what the cluster's record of the set says now.
	Record *Parent
	// Objects are all of the set, in its order.
	Objects []Judgement
	// Unpruned is how many objects of the version before stay until all is healthy.
	Unpruned int
}

// Step carries a plan out as far as it goes without waiting: it applies, judges
// health once, and prunes only where all is healthy. While something is unpruned
// the record says Applying; whoever calls plans again when health has changed.
func (e *Engine) Step(ctx context.Context, plan *Plan) (*Outcome, error) {
	applied, err := e.carryOut(ctx, plan)
	if err != nil {
		return nil, err
	}
	outcome := &Outcome{Unpruned: plan.Count(ActionPrune)}
	healthy := true
	for _, change := range plan.Changes {
		judgement := e.judgementOf(change.ID, applied[change.ID])
		healthy = healthy && judgement.Healthy()
		outcome.Objects = append(outcome.Objects, judgement)
	}
	if healthy {
		if err := e.prune(ctx, plan, false); err != nil {
			return nil, err
		}
		outcome.Unpruned = 0
	}
	if err := ctx.Err(); err != nil {
		// Cut short before the record says that all is done.
		return nil, err
	}
	outcome.Record = plan.final(applied, outcome.Unpruned == 0, e.now())
	return outcome, e.writeParent(ctx, outcome.Record)
}

// Judgement is the health of one object, and of which state of it.
type Judgement struct {
	Health
	// ResourceVersion is that of the state that was judged; empty where there is no object.
	ResourceVersion string
}

func (e *Engine) judgementOf(id ID, live *unstructured.Unstructured) Judgement {
	judgement := Judgement{Health: e.healthOf(id, live)}
	if live != nil {
		judgement.ResourceVersion = live.GetResourceVersion()
	}
	return judgement
}

// Judge reads objects and judges their health once, in the given order.
func (e *Engine) Judge(ctx context.Context, ids []ID) ([]Judgement, error) {
	judgements := make([]Judgement, len(ids))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(concurrency)
	for i, id := range ids {
		group.Go(func() error {
			live := &unstructured.Unstructured{}
			found, err := e.get(groupCtx, id, live)
			if err != nil {
				return fmt.Errorf("read %s: %w", id.Full(), err)
			}
			if !found {
				live = nil
			}
			judgements[i] = e.judgementOf(id, live)
			return nil
		})
	}
	return judgements, group.Wait()
}
