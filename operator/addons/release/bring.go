package release

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/millwright-dev/millwright/api/addons/v1alpha1"
	"github.com/millwright-dev/millwright/internal/addon"
	"github.com/millwright-dev/millwright/internal/apply"
	"github.com/millwright-dev/millwright/internal/conditions"
)

// bring compares the cluster with what it shall have, and applies what differs.
func (r *Reconciler) bring(ctx context.Context, s *snapshot, found report) (report, error) {
	objects, err := r.render(ctx, s)
	if err != nil {
		return found.failed(addonsv1.SourceReason, err), nil
	}
	set, _, err := addon.MakeSet(ctx, s.engine.Client, s.input, objects)
	if err != nil {
		return found.afterRequest(err)
	}
	plan, err := s.engine.Plan(ctx, set)
	if err != nil {
		return found.afterRequest(err)
	}
	key, clusterKey := client.ObjectKeyFromObject(s.release), client.ObjectKeyFromObject(s.cluster)
	if drift := onlyDrift(plan, s.record); len(drift) > 0 && s.release.Spec.Drift == addonsv1.DriftReport {
		if s.known, err = r.leave(ctx, s, drift); err != nil {
			return found.afterRequest(err)
		}
	} else {
		if _, err := addon.TakeFromControlPlane(ctx, r.Client, s.cluster, s.release.Spec.Bundle); err != nil {
			return found, err
		}
		outcome, err := s.engine.Step(ctx, plan)
		if err != nil {
			return found.afterRequest(err)
		}
		s.known = &knowledge{connection: s.connection, digest: s.digest, record: outcome.Record, objects: outcome.Objects, unpruned: outcome.Unpruned}
		r.tell(s, plan)
	}
	// Known before it is watched, or a change in between would mean nothing to anybody.
	r.memory.put(key, clusterKey, s.known)
	if err := r.follower.Follow(clusterKey, s.connection, kinds(s.known.record)); err != nil {
		return found, err
	}
	return found.with(s.known), nil
}

// onlyDrift lists the objects that a plan would write where that does no more than to correct drift; else none.
func onlyDrift(plan *apply.Plan, record *apply.Parent) []apply.ID {
	if record == nil || record.State != apply.StateApplied || plan.Count(apply.ActionPrune) > 0 {
		return nil
	}
	var drift []apply.ID
	for _, change := range plan.Changes {
		switch {
		case change.Action == apply.ActionUnchanged:
		case change.Drifted:
			drift = append(drift, change.ID)
		default:
			return nil
		}
	}
	return drift
}

// leave takes note of drift that is not corrected.
func (r *Reconciler) leave(ctx context.Context, s *snapshot, drift []apply.ID) (*knowledge, error) {
	ids := make([]apply.ID, 0, len(s.record.Members))
	for _, member := range s.record.Members {
		ids = append(ids, member.ID)
	}
	objects, err := s.engine.Judge(ctx, ids)
	if err != nil {
		return nil, err
	}
	return &knowledge{connection: s.connection, digest: s.digest, record: s.record, objects: objects, drift: drift}, nil
}

// kinds lists the kinds of the members of a record.
func kinds(record *apply.Parent) []schema.GroupKind {
	seen := map[schema.GroupKind]bool{}
	var list []schema.GroupKind
	for _, member := range record.Members {
		if kind := member.GroupKind(); !seen[kind] {
			seen[kind] = true
			list = append(list, kind)
		}
	}
	return list
}

// afterRequest sorts the end of a request to the workload cluster: an answer about the objects is told in a condition;
// a failure to ask is tried again, and told where the server gave it as an answer.
func (found report) afterRequest(err error) (report, error) {
	var conflict *apply.ConflictError
	var impossible *apply.ImpossibleError
	var late *apply.NotHealthyError
	switch {
	case errors.As(err, &conflict):
		return found.failed(addonsv1.ConflictReason, fmt.Errorf("%w: let its owner release the field, or set spec.conflicts to Force", conflict)), nil
	case errors.As(err, &impossible):
		return found.failed(addonsv1.RefusedReason, impossible), nil
	case errors.As(err, &late), isAnswer(err):
		found.set(conditions.False(addonsv1.AppliedCondition, addonsv1.ApplyFailedReason, "%v", err))
	}
	return found, err
}

// isAnswer tells an answer of the server from one that says only that it cannot answer now.
func isAnswer(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	switch status.Status().Reason {
	case metav1.StatusReasonTimeout, metav1.StatusReasonServerTimeout, metav1.StatusReasonServiceUnavailable, metav1.StatusReasonTooManyRequests, metav1.StatusReasonConflict:
		return false
	}
	return true
}
