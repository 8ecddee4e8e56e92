package controlplane

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/lifecycle"
)

// stuckAfter is how long a Machine may be unhealthy before it counts as one that will not recover by itself. What kubeadm
// join and a first start take is less.
const stuckAfter = closelyFor

// outdated tells whether a Machine is to be replaced: what it was told last, in this reconcile.
func (r *replica) outdated() bool {
	return conditions.IsFalse(r.machine, clusterv1.MachineUpToDateCondition)
}

// outdated returns the Machines that are to be replaced, those being deleted left out: they are on their way.
func (s *snapshot) outdated() []*replica {
	var out []*replica
	for _, r := range s.replicas {
		if !r.deleting() && r.outdated() {
			out = append(out, r)
		}
	}
	return out
}

// surge is how many Machines more than wanted a rollout may make.
func (s *snapshot) surge() int {
	maxSurge := s.controlPlane.Spec.Rollout.Strategy.RollingUpdate.MaxSurge
	if maxSurge == nil {
		return 1
	}
	return min(max(maxSurge.IntValue(), 0), 1)
}

// rollOut replaces one Machine of a control plane that has as many as are wanted: with surge the new one comes first,
// without it the old one goes first.
func rollOut(s *snapshot, p *plan) {
	if s.surge() > 0 {
		scaleUp(s, p)
		return
	}
	if len(s.replicas) == 1 {
		p.blocked = []string{"spec.rollout.strategy.rollingUpdate.maxSurge is 0: the only machine would have to go before another comes; set it to 1, or spec.replicas to 3"}
		return
	}
	scaleDown(s, p)
}

// beyondHope returns an outdated Machine that is unhealthy and has been for long: what is asked for has changed since it
// failed, and nothing else can be done before it is gone. A control plane that is initialized keeps its last Machine.
func beyondHope(s *snapshot) *replica {
	for _, r := range s.outdated() {
		if stuck(s, r) && mayLose(s, r) == "" {
			return r
		}
	}
	return nil
}

// mayLose returns an empty string when the control plane can do without a Machine as it is now, whatever its state and
// that of others; else the reason why not.
func mayLose(s *snapshot, r *replica) string {
	switch {
	case !s.initialized():
		return ""
	case !s.workload.connected:
		return "the API server of the Cluster does not answer"
	case !othersServe(s, r):
		return "no other machine is known to run a healthy API server"
	case !s.stackedEtcd():
		return ""
	case s.workload.etcd == nil:
		return orUnknown(s.workload.etcdErr)
	}
	if member := memberOf(s, r); member != nil {
		return keepsQuorum(s, member.ID)
	}
	return ""
}

func stuck(s *snapshot, r *replica) bool {
	return !r.deleting() && !r.healthy(s.gates()) && s.now.Sub(lastChange(r, s.gates())) >= stuckAfter
}

// wrongVersion tells why machines of spec.version must not join those that there are (kubernetes.io, "Version Skew
// Policy"). A policy refuses such a version when it is written; this is for those that were written without the policy.
func wrongVersion(s *snapshot, want *semver.Version) string {
	var oldest, newest *semver.Version
	for _, r := range s.replicas {
		version, err := lifecycle.ParseVersion(r.machine.Spec.Version)
		if err != nil {
			continue
		}
		if oldest == nil || version.LessThan(oldest) {
			oldest = version
		}
		if newest == nil || newest.LessThan(version) {
			newest = version
		}
	}
	switch {
	case oldest == nil:
		return ""
	case want.LessThan(newest):
		return fmt.Sprintf("spec.version is v%s: a machine of v%s runs, and a control plane cannot be downgraded: set v%s or a later one", want, newest, newest)
	case want.Major() != oldest.Major() || want.Minor() > oldest.Minor()+1:
		return fmt.Sprintf("spec.version is v%s: a machine of v%s runs, and no minor version may be skipped: set v%d.%d.x first",
			want, oldest, oldest.Major(), oldest.Minor()+1)
	}
	return ""
}

// reasonsToRoll returns what makes Machines out of date, each reason once.
func reasonsToRoll(s *snapshot) []string {
	var lines []string
	for _, r := range s.replicas {
		if r.outdated() {
			lines = append(lines, strings.Split(conditions.Get(r.machine, clusterv1.MachineUpToDateCondition).Message, "\n")...)
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// rolloutAfter returns what a Machine that is made now is made for: spec.rollout.after once that has passed, else "".
func rolloutAfter(s *snapshot) string {
	after := s.controlPlane.Spec.Rollout.After.Time
	if after.IsZero() || s.now.Before(after) {
		return ""
	}
	return after.UTC().Format(time.RFC3339)
}
