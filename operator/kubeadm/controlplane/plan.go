package controlplane

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/utils/ptr"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/etcd"
	"github.com/millwright-dev/millwright/internal/kubeadm"
	"github.com/millwright-dev/millwright/internal/lifecycle"
)

// plan is what to do next: at most one change to the number of machines or members. Blocked says why
// the number of machines that is asked for cannot be reached just now.
type plan struct {
	// complete are Machines whose own objects have not all been made: a reconcile was cut short.
	complete []*replica
	// create makes one Machine; remove deletes one.
	create *newMachine
	remove *replica
	// release lets go of a Machine that waits for us: after its etcd member has left, where it has one.
	release *replica
	// evict removes a member whose Machine is gone.
	evict *etcd.Member
	// anew replaces all of this where a person has given up what etcd holds.
	anew *anew
	// remediation is why remove is deleted, where it is, and what Machines that failed their health check are told.
	remediation remediation

	blocked []string
}

// newMachine is a Machine to be made.
type newMachine struct {
	name          string
	join          bool
	failureDomain string
}

// makePlan decides on the next step of a control plane that is not being deleted.
func makePlan(s *snapshot) plan {
	step, refused := beginAnew(s)
	if step != nil {
		return plan{anew: step, blocked: []string{"What etcd held is given up: the Machines that there are go first"}}
	}
	p := nextStep(s)
	if refused != "" {
		p.blocked = append(p.blocked, refused)
	}
	return p
}

func nextStep(s *snapshot) plan {
	var p plan
	for _, r := range s.replicas {
		if incomplete(r) {
			p.complete = append(p.complete, r)
		}
	}
	waiting := waitingForRelease(s)
	if len(waiting) > 0 && !onlyOneLeaves(s) {
		p.release, p.blocked = releasable(s, waiting)
		if p.release == nil {
			// What keeps them may be a member without a machine, or a machine that is to be replaced anyway.
			if p.evict = orphan(s); p.evict == nil {
				p.remediation = planRemediation(s, invalid(s))
				p.remove = cmp.Or(p.remediation.remove, beyondHope(s))
			}
		}
		return p
	}
	if !s.cluster.DeletionTimestamp.IsZero() {
		p.blocked = []string{"The Cluster is being deleted"}
		return p
	}
	if problem := invalid(s); problem != "" {
		p.blocked = []string{problem}
		p.remediation = planRemediation(s, problem)
		return p
	}
	if p.evict = orphan(s); p.evict != nil {
		return p
	}
	p.remediation = planRemediation(s, "")
	if p.remove = p.remediation.remove; p.remove != nil {
		return p
	}
	switch have, want, hopeless := len(s.replicas), s.desired(), beyondHope(s); {
	case onlyOneLeaves(s):
		if len(waiting) > 0 {
			scaleUp(s, &p)
		}
	case hopeless != nil:
		p.remove = hopeless
	case have < want, p.remediation.replaceFirst:
		scaleUp(s, &p)
	case have > want:
		scaleDown(s, &p)
	case len(s.outdated()) > 0:
		rollOut(s, &p)
	}
	return p
}

// incomplete tells whether a Machine still lacks an object that we make for it. One that is missing
// later was deleted by somebody, and making it anew would make another machine.
func incomplete(r *replica) bool {
	if r.deleting() {
		return false
	}
	needsConfig := r.config == nil && r.machine.Spec.Bootstrap.DataSecretName == nil
	needsInfrastructure := r.infrastructure == nil && r.machine.Spec.ProviderID == "" &&
		!ptr.Deref(r.machine.Status.Initialization.InfrastructureProvisioned, false)
	return needsConfig || needsInfrastructure
}

// invalid tells what is wrong with the spec, so that nothing can be built from it.
func invalid(s *snapshot) string {
	version, err := lifecycle.ParseVersion(s.controlPlane.Spec.Version)
	if err != nil {
		return "spec.version: " + err.Error()
	}
	if problem := wrongVersion(s, version); problem != "" {
		return problem
	}
	switch want := s.desired(); {
	case want < 1:
		return fmt.Sprintf("spec.replicas is %d: a control plane has at least one machine; delete the Cluster to be rid of it", want)
	case want%2 == 0 && s.stackedEtcd():
		return fmt.Sprintf("spec.replicas is %d: etcd on the control plane's machines needs an odd number; ask for %d or %d", want, want-1, want+1)
	}
	// A machine made from it would never start, and may have taken the place of one that runs.
	if err := kubeadm.Check(s.controlPlane.Spec.KubeadmConfigSpec, s.controlPlane.Spec.Version); err != nil {
		return "spec.kubeadmConfigSpec." + err.Error()
	}
	return ""
}

func scaleUp(s *snapshot, p *plan) {
	first := len(s.replicas) == 0
	switch {
	case first && s.initialized():
		p.blocked = []string{"The control plane has lost all its machines, and with them etcd: nothing can join it. Its condition Available tells how to begin anew or from a snapshot"}
		return
	case first && ptr.Deref(s.cluster.Status.Initialization.ControlPlaneInitialized, false):
		// It begins anew. Before the Cluster knows, a machine would be made to join.
		p.blocked = []string{"The Cluster does not know yet that its control plane is to be initialized again"}
		return
	case !first && !s.initialized():
		p.blocked = []string{"Machine " + s.replicas[0].machine.Name + " has not initialized the control plane yet"}
		return
	}
	if !first {
		if p.blocked = unhealthy(s, nil); len(p.blocked) > 0 {
			return
		}
	}
	name, err := freeName(s)
	if err != nil {
		p.blocked = []string{err.Error()}
		return
	}
	p.create = &newMachine{name: name, join: !first, failureDomain: failureDomain(s)}
}

// scaleDown deletes a Machine if all others are healthy: it need not be itself.
func scaleDown(s *snapshot, p *plan) {
	leaving := victim(s)
	if p.blocked = unhealthy(s, leaving); len(p.blocked) == 0 {
		p.remove = leaving
	}
}

// victim chooses the Machine to be deleted: one marked by the user, one that failed its health check, one that is not up
// to date, one that is unhealthy for long, one in the fullest failure domain, the oldest. A new one that does not come up must not make room for the next.
func victim(s *snapshot) *replica {
	count := map[string]int{}
	for _, r := range s.replicas {
		count[lifecycle.DomainOf(r.machine)]++
	}
	first := func(a, b bool) int {
		switch {
		case a == b:
			return 0
		case a:
			return -1
		}
		return 1
	}
	marked := func(r *replica) bool { _, ok := r.machine.Annotations[clusterv1.DeleteMachineAnnotation]; return ok }
	broken := func(r *replica) bool { return stuck(s, r) }
	return slices.MinFunc(s.replicas, func(a, b *replica) int {
		return cmp.Or(
			first(marked(a), marked(b)),
			first(a.sick(), b.sick()),
			first(a.outdated(), b.outdated()),
			first(broken(a), broken(b)),
			cmp.Compare(count[lifecycle.DomainOf(b.machine)], count[lifecycle.DomainOf(a.machine)]),
			a.machine.CreationTimestamp.Compare(b.machine.CreationTimestamp.Time),
			strings.Compare(a.machine.Name, b.machine.Name),
		)
	})
}

// waitingForRelease returns the Machines whose deletion has come to our hook, the longest deleted first; none before
// the one that was let go last is gone. Our hook is the last: the kubelet that other hooks may need stops working with the
// etcd member.
func waitingForRelease(s *snapshot) []*replica {
	var waiting []*replica
	for _, r := range s.replicas {
		if r.released() {
			return nil
		}
		if waitsForUs(r) {
			waiting = append(waiting, r)
		}
	}
	slices.SortFunc(waiting, func(a, b *replica) int {
		return cmp.Or(a.machine.DeletionTimestamp.Compare(b.machine.DeletionTimestamp.Time), strings.Compare(a.machine.Name, b.machine.Name))
	})
	return waiting
}

// waitsForUs tells whether our hook is all that keeps a Machine.
func waitsForUs(r *replica) bool {
	c := conditions.Get(r.machine, clusterv1.MachineDeletingCondition)
	return r.deleting() && !r.released() && c != nil && c.Reason == clusterv1.MachineDeletingWaitingForPreTerminateHookReason && !otherHooks(r.machine)
}

// releasable returns the first of the Machines that may go, else why none may. One that is dead may have to go before
// one that is not, whichever was deleted first.
func releasable(s *snapshot, waiting []*replica) (*replica, []string) {
	var reasons []string
	for _, r := range waiting {
		why := whyKept(s, r)
		if why == "" {
			return r, nil
		}
		reasons = append(reasons, why)
	}
	return nil, reasons
}

// othersServe tells whether another machine than the one that leaves runs an API server.
func othersServe(s *snapshot, leaving *replica) bool {
	return slices.ContainsFunc(s.replicas, func(r *replica) bool {
		return r != leaving && !r.released() && conditions.IsTrue(r.machine, controlplanev1.KubeadmControlPlaneMachineAPIServerPodHealthyCondition)
	})
}

func otherHooks(machine *clusterv1.Machine) bool {
	for name := range machine.Annotations {
		if name != hook && strings.HasPrefix(name, clusterv1.PreTerminateDeleteHookAnnotationPrefix) {
			return true
		}
	}
	return false
}

// onlyOneLeaves tells whether the last Machine of a control plane that is in use is being deleted. It stays until another
// has taken its place, which only a machine that runs can help with.
func onlyOneLeaves(s *snapshot) bool {
	return s.initialized() && s.cluster.DeletionTimestamp.IsZero() && len(s.replicas) == 1 && s.replicas[0].deleting() && !s.replicas[0].released()
}

// whyKept says what would break if the Machine went now. With one that never became a member, and before there is a
// control plane, nothing can.
func whyKept(s *snapshot, leaving *replica) string {
	if !s.initialized() || !s.cluster.DeletionTimestamp.IsZero() && len(s.replicas) == 1 {
		return ""
	}
	name := leaving.machine.Name
	// It never joined, or has left already in a try that was cut short.
	if member := memberOf(s, leaving); s.stackedEtcd() && s.workload.etcd != nil && member == nil {
		return ""
	}
	if reason := mayLose(s, leaving); reason != "" {
		return "Machine " + name + " waits to leave: " + reason
	}
	if member := memberOf(s, leaving); member != nil && s.workload.etcd.Leader == member.ID && successor(s, leaving) == nil {
		return "Machine " + name + " leads etcd, and no other member is fit to lead"
	}
	return ""
}

// failureDomain returns the domain for control planes with the fewest machines that stay, of those the one with the
// fewest machines; empty without any.
func failureDomain(s *snapshot) string {
	type load struct{ staying, all int }
	loads := map[string]load{}
	for _, r := range s.replicas {
		of := loads[lifecycle.DomainOf(r.machine)]
		of.all++
		if !r.deleting() && !r.outdated() {
			of.staying++
		}
		loads[lifecycle.DomainOf(r.machine)] = of
	}
	var names []string
	for _, domain := range s.cluster.Status.FailureDomains {
		if ptr.Deref(domain.ControlPlane, false) {
			names = append(names, domain.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return slices.MinFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(loads[a].staying, loads[b].staying), cmp.Compare(loads[a].all, loads[b].all), strings.Compare(a, b))
	})
}

func orUnknown(err error) string {
	if err == nil {
		return "etcd has not been asked yet"
	}
	return err.Error()
}
