package controlplane

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/patch"
	"github.com/millwright-dev/millwright/internal/pki"
)

// act carries out the plan and leaves in the snapshot what there is afterwards.
func (r *Reconciler) act(ctx context.Context, s *snapshot, etcdCA pki.KeyPair, helper *patch.Helper) (report, error) {
	p := makePlan(s)
	told := report{blocked: p.blocked, again: p.remediation.again}
	if p.anew != nil {
		err := r.giveUp(ctx, s, p.anew.giveUp)
		if err == nil && p.anew.reset {
			err = r.reset(ctx, s, helper)
		}
		return told, err
	}
	if p.changes() {
		// The event of what the cache lacks brings us back.
		if stale, err := r.stale(ctx, s); stale || err != nil {
			return told, err
		}
	}
	err := r.remediate(ctx, s, p.remediation, helper)
	if err == nil {
		err = r.shrink(ctx, s, p, etcdCA)
	}
	var problems []string
	switch {
	case err != nil:
	case p.create != nil || len(p.complete) > 0:
		problems, err = r.grow(ctx, s, p, helper)
		told.blocked = append(told.blocked, problems...)
	case atRest(s):
		told.unfinished, err = r.finish(ctx, s)
	}
	if err != nil {
		told.blocked = append(told.blocked, err.Error())
	}
	return told, err
}

// changes tells whether the plan changes the number of Machines or members.
func (p plan) changes() bool {
	return p.evict != nil || p.remove != nil || p.release != nil || p.create != nil
}

// shrink lets go of a Machine or a member, or deletes a Machine.
func (r *Reconciler) shrink(ctx context.Context, s *snapshot, p plan, etcdCA pki.KeyPair) error {
	var members reach
	if p.evict != nil || p.release != nil && memberOf(s, p.release) != nil && len(s.replicas) > 1 {
		var err error
		if members, err = r.members(ctx, s, etcdCA); err != nil {
			return err
		}
	}
	if p.release != nil {
		if members != nil {
			if err := leaveEtcd(ctx, s, p.release, members); err != nil {
				return err
			}
		}
		if err := r.unhook(ctx, p.release); err != nil {
			return err
		}
	}
	if p.evict != nil {
		if err := removeMember(ctx, s, nil, *p.evict, members); err != nil {
			return err
		}
		r.Recorder.Eventf(s.controlPlane, nil, corev1.EventTypeWarning, "EtcdMemberRemoved", "RemoveEtcdMember", "Removed etcd member %s, whose Machine is gone", memberName(*p.evict))
	}
	if p.remove != nil {
		return r.remove(ctx, s, p.remove)
	}
	return nil
}

// grow makes a Machine, and what others lack. It returns what a person has to put right first.
func (r *Reconciler) grow(ctx context.Context, s *snapshot, p plan, helper *patch.Helper) (problems []string, err error) {
	template, problem, err := r.readTemplate(ctx, s)
	if err != nil {
		return nil, err
	}
	if problem != "" {
		return []string{problem}, nil
	}
	for _, replica := range p.complete {
		join := s.initialized() || len(s.replicas) > 1
		if err := r.complete(ctx, s, template, replica, join); err != nil {
			return nil, err
		}
	}
	if p.create == nil {
		return nil, nil
	}
	if p.create.join {
		if problems, err = r.prepareJoin(ctx, s); len(problems) > 0 || err != nil {
			return problems, err
		}
	}
	made, err := r.create(ctx, s, template, *p.create)
	if made != nil {
		s.replicas = append(s.replicas, made)
		// Written by the next reconcile; here only for the status.
		for _, condition := range append(machineConditions(s, made), upToDate(s, made)) {
			conditions.Set(made.machine, condition)
		}
	}
	if err != nil {
		return nil, err
	}
	return nil, r.replaced(ctx, s, helper)
}

// stale tells whether the API server shows other Machines than those that the plan was made on: a cache
// that has not seen our last deletion, or what we let go last, would ask for another one, and cost quorum.
func (r *Reconciler) stale(ctx context.Context, s *snapshot) (bool, error) {
	live, err := r.machines(ctx, r.Live, s.controlPlane, s.cluster)
	if err != nil {
		return false, err
	}
	return !slices.EqualFunc(live, s.replicas, func(machine *clusterv1.Machine, seen *replica) bool {
		now := &replica{machine: machine}
		return machine.UID == seen.machine.UID && now.deleting() == seen.deleting() && now.released() == seen.released()
	}), nil
}
