package controlplane

import (
	"cmp"
	"fmt"
	"strings"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"

	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/etcd"
)

// unhealthy returns what is wrong with the control plane, one line for each Machine but one, which may be nil; none when it
// is safe to add a machine or to take that one away.
func unhealthy(s *snapshot, but *replica) []string {
	if !s.workload.connected {
		return []string{"The API server of the Cluster does not answer"}
	}
	var lines []string
	if s.stackedEtcd() && s.workload.etcd == nil {
		lines = append(lines, "etcd does not answer: "+orUnknown(s.workload.etcdErr))
	}
	for _, r := range s.replicas {
		switch {
		case r == but && !r.deleting():
		case r.deleting() && !onlyOneLeaves(s):
			lines = append(lines, "Machine "+r.machine.Name+" is being deleted")
		case r.node() == "":
			lines = append(lines, "Machine "+r.machine.Name+" has no Node yet")
		default:
			if bad := notTrue(r, s.gates()); len(bad) > 0 {
				lines = append(lines, "Machine "+r.machine.Name+": "+strings.Join(bad, ", "))
			}
		}
	}
	return append(lines, foreignMembers(s)...)
}

func notTrue(r *replica, conditionTypes []string) []string {
	var out []string
	for _, conditionType := range conditionTypes {
		c := conditions.Get(r.machine, conditionType)
		switch {
		case c == nil:
			out = append(out, conditionType+" is not known yet")
		case c.Status != "True":
			out = append(out, fmt.Sprintf("%s is %s", conditionType, c.Status))
		}
	}
	return out
}

// foreignMembers names members of etcd that belong to no Machine.
func foreignMembers(s *snapshot) []string {
	var lines []string
	if s.workload.etcd == nil {
		return nil
	}
	for _, member := range s.workload.etcd.Members {
		if machineOf(s, member) == nil {
			lines = append(lines, "etcd member "+memberName(member)+" belongs to no Machine")
		}
	}
	return lines
}

// orphan returns a member of etcd to be removed because its Machine is gone, nil when there is none.
// While a Machine has no member of its own yet, a stranger may become that: kubeadm adds a member
// before it starts.
func orphan(s *snapshot) *etcd.Member {
	status := s.workload.etcd
	if status == nil {
		return nil
	}
	for _, r := range s.replicas {
		if r.node() == "" || memberOf(s, r) == nil {
			return nil
		}
	}
	for i, member := range status.Members {
		if machineOf(s, member) == nil && (member.Name == "" || member.Learner || keepsQuorum(s, member.ID) == "") {
			return &status.Members[i]
		}
	}
	return nil
}

// keepsQuorum returns an empty string when the members that are left without the given one are enough
// to agree, else the reason why not.
func keepsQuorum(s *snapshot, without uint64) string {
	if s.workload.etcd == nil {
		return "etcd does not answer"
	}
	if voters, healthy := votes(s, without); healthy < quorum(voters) {
		return fmt.Sprintf("%d etcd members would be left, %d of them healthy; %d must be", voters, healthy, quorum(voters))
	}
	return ""
}

// votes counts the members of etcd other than the given one, and those of them in good health.
// Learners have no vote.
func votes(s *snapshot, without uint64) (voters, healthy int) {
	for _, member := range s.workload.etcd.Members {
		if member.ID == without || member.Learner {
			continue
		}
		voters++
		if r := machineOf(s, member); r != nil && memberHealthy(r) {
			healthy++
		}
	}
	return voters, healthy
}

func quorum(voters int) int { return voters/2 + 1 }

// memberHealthy counts a member as lost once its Machine is let go, and not before: two Machines that are deleted at
// the same time would each wait for the other.
func memberHealthy(r *replica) bool {
	return !r.released() && conditions.IsTrue(r.machine, controlplanev1.KubeadmControlPlaneMachineEtcdMemberHealthyCondition) &&
		conditions.IsTrue(r.machine, controlplanev1.KubeadmControlPlaneMachineEtcdPodHealthyCondition)
}

// successor returns the member that is to lead when the one of a replica goes, one that stays where there is one; nil
// when none is fit.
func successor(s *snapshot, leaving *replica) *etcd.Member {
	var best *etcd.Member
	for _, r := range s.replicas {
		if r == leaving || r.node() == "" || !memberHealthy(r) {
			continue
		}
		member := memberOf(s, r)
		switch {
		case member == nil || member.Learner:
		case !r.deleting():
			return member
		case best == nil:
			best = member
		}
	}
	return best
}

// memberName returns the name that a Machine's member has, or will have: kubeadm names members after their Nodes, and the
// Node of a machine that has only just joined has the name of the Machine, which is its host name.
func (r *replica) memberName() string { return cmp.Or(r.node(), r.machine.Name) }

// memberOf returns the member that runs on a Machine, nil when none is known.
func memberOf(s *snapshot, r *replica) *etcd.Member {
	if s.workload.etcd == nil {
		return nil
	}
	return s.workload.etcd.Member(r.memberName())
}

// machineOf returns the replica that a member runs on.
func machineOf(s *snapshot, member etcd.Member) *replica {
	if member.Name == "" {
		return nil
	}
	for _, r := range s.replicas {
		if r.memberName() == member.Name {
			return r
		}
	}
	return nil
}

func memberName(member etcd.Member) string {
	if member.Name == "" {
		return fmt.Sprintf("%x (not started yet)", member.ID)
	}
	return member.Name
}
