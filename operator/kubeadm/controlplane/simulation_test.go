package controlplane

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/etcd"
)

// world plays everything around the planner: hosts that boot, die and come back, an operator that dies between two
// writes, and a user who deletes Machines. What the planner is shown lags behind in one way only: a dead host is told by
// its pods, or later by a taint, never by etcd's list of members.
type world struct {
	*snapshot
	t    *testing.T
	rng  *rand.Rand
	dead map[string]bool
	// doomed hosts never come back.
	doomed map[string]bool
	// checked tells that a health check asks for the replacement of Machines whose hosts are dead.
	checked bool
	ids     uint64
	// most is the largest number of Machines that may exist.
	most int
	log  []string
}

func newWorld(t *testing.T, seed uint64, replicas int) *world {
	w := &world{
		snapshot: prod(replicas, replicas), t: t, rng: rand.New(rand.NewPCG(seed, 1)),
		dead: map[string]bool{}, doomed: map[string]bool{}, ids: uint64(replicas), most: replicas,
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d:", seed)
			for _, line := range w.log {
				t.Log(line)
			}
		}
	})
	return w
}

func (w *world) note(format string, args ...any) { w.log = append(w.log, fmt.Sprintf(format, args...)) }

func (w *world) chance(percent int) bool { return w.rng.IntN(100) < percent }

// running tells whether a member has a host that runs.
func (w *world) running(m etcd.Member) bool {
	return machineOf(w.snapshot, m) != nil && !w.dead[m.Name]
}

// quorate tells whether etcd can agree on anything, as it really is.
func (w *world) quorate(members []etcd.Member) bool {
	voters, running := 0, 0
	for _, m := range members {
		if m.Learner {
			continue
		}
		voters++
		if w.running(m) {
			running++
		}
	}
	return running >= quorum(voters)
}

// look brings what the planner sees in line with what is.
func (w *world) look(members []etcd.Member) {
	w.workload.connected = w.quorate(members)
	w.workload.etcd = nil
	if w.workload.connected {
		status := &etcd.Status{Members: members}
		for _, m := range members {
			if !m.Learner && w.running(m) {
				status.Leader = m.ID
			}
		}
		w.workload.etcd = status
	}
	for _, r := range w.replicas {
		node := r.node()
		if node == "" {
			continue
		}
		var ready []corev1.PodCondition
		if !w.dead[node] {
			ready = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		}
		object := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node, Labels: map[string]string{controlPlaneRole: ""}}}
		if w.dead[node] && w.chance(50) {
			object.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnreachable}}
		}
		w.workload.nodes[node] = object
		for _, component := range components {
			w.workload.pods[podName(component.name, node)] = &corev1.Pod{Status: corev1.PodStatus{Conditions: ready}}
		}
	}
	for _, r := range w.replicas {
		for _, condition := range append(machineConditions(w.snapshot, r), upToDate(w.snapshot, r)) {
			condition.LastTransitionTime = metav1.NewTime(w.now)
			conditions.Set(r.machine, condition)
		}
	}
}

// host lets time pass for one Machine: it boots, or its deletion goes on.
func (w *world) host(r *replica, members []etcd.Member) []etcd.Member {
	name := r.machine.Name
	switch {
	case r.released():
		w.note("%s is gone", name)
		w.replicas = slices.DeleteFunc(w.replicas, func(other *replica) bool { return other == r })
		delete(w.dead, name)
		delete(w.doomed, name)
	case r.deleting():
		conditions.Set(r.machine, conditions.True(clusterv1.MachineDeletingCondition, clusterv1.MachineDeletingWaitingForPreTerminateHookReason, ""))
	case r.node() == "" && w.quorate(members) && !w.dead[name]:
		if member := (etcd.Status{Members: members}).Member(name); member == nil {
			w.ids++
			return append(members, etcd.Member{ID: w.ids, Name: name, Learner: true})
		} else if member.Learner {
			member.Learner = false
		} else {
			w.note("%s has joined", name)
			r.machine.Status.NodeRef.Name = name
		}
	}
	return members
}

// kill lets a host die now and then, as long as fewer than most are dead.
func (w *world) kill(most int) {
	if w.chance(30) && len(w.dead) < most {
		name := w.replicas[w.rng.IntN(len(w.replicas))].machine.Name
		w.dead[name] = true
		w.note("%s dies", name)
	}
}

// doom lets a host die for good.
func (w *world) doom(i int) {
	name := w.replicas[i].machine.Name
	w.doomed[name], w.dead[name] = true, true
	w.note("%s dies for good", name)
}

// check does what a health check does.
func (w *world) check() {
	for _, r := range w.replicas {
		if !w.dead[r.machine.Name] {
			if conditions.Get(r.machine, clusterv1.MachineHealthCheckSucceededCondition) != nil {
				conditions.Set(r.machine, conditions.True(clusterv1.MachineHealthCheckSucceededCondition, "x", ""))
			}
			continue
		}
		conditions.Set(r.machine, conditions.False(clusterv1.MachineHealthCheckSucceededCondition, "x", ""))
		if !conditions.IsFalse(r.machine, clusterv1.MachineOwnerRemediatedCondition) {
			conditions.Set(r.machine, conditions.False(clusterv1.MachineOwnerRemediatedCondition, clusterv1.MachineOwnerRemediatedWaitingForRemediationReason, ""))
		}
	}
}

// delete is what a user or the plan does to a Machine.
func (w *world) delete(r *replica) {
	if !r.deleting() {
		r.machine.DeletionTimestamp = &metav1.Time{Time: w.now}
		conditions.Set(r.machine, conditions.True(clusterv1.MachineDeletingCondition, clusterv1.MachineDeletingDrainingNodeReason, ""))
	}
}

// act carries out a plan, unless the operator dies on the way, and checks what must never happen.
func (w *world) act(p plan, members []etcd.Member) []etcd.Member {
	steps := 0
	for _, step := range []bool{p.create != nil, p.remove != nil, p.release != nil, p.evict != nil} {
		if step {
			steps++
		}
	}
	if steps > 1 {
		w.t.Errorf("%s: more than one step at a time", summary(p))
	}
	leave := func(id uint64) bool {
		left := slices.DeleteFunc(slices.Clone(members), func(m etcd.Member) bool { return m.ID == id })
		if w.quorate(members) && !w.quorate(left) {
			w.t.Errorf("removing member %d leaves %v without quorum", id, left)
		}
		members = left
		return w.chance(90)
	}
	for _, v := range p.remediation.tell {
		if v.condition == nil {
			conditions.Delete(v.replica.machine, clusterv1.MachineOwnerRemediatedCondition)
		} else {
			conditions.Set(v.replica.machine, *v.condition)
		}
	}
	switch {
	case p.create != nil:
		made := &replica{machine: machineFor(w.snapshot, *p.create), infrastructure: &unstructured.Unstructured{Object: map[string]any{}}}
		made.machine.CreationTimestamp = metav1.NewTime(w.now)
		made.machine.Spec.ProviderID, made.machine.Spec.Bootstrap.DataSecretName = "x", ptr.To("x")
		made.config = configFor(w.snapshot, made.machine, metav1.OwnerReference{}, p.create.join)
		w.replicas = append(w.replicas, made)
	case p.remove != nil:
		w.delete(p.remove)
	case p.evict != nil:
		leave(p.evict.ID)
	case p.release != nil:
		for _, r := range w.replicas {
			if r.released() {
				w.t.Errorf("%s is let go before %s is gone", p.release.machine.Name, r.machine.Name)
			}
		}
		alive := true
		if member := (etcd.Status{Members: members}).Member(p.release.memberName()); member != nil && len(w.replicas) > 1 {
			alive = leave(member.ID)
		}
		if alive {
			delete(p.release.machine.Annotations, hook)
		}
	}
	if len(w.replicas) > w.most {
		w.t.Errorf("there are %d Machines, %d may be", len(w.replicas), w.most)
	}
	return members
}

// calm is the step after which nobody may meddle any more.
const calm = 40

// run lets the operator look and act until nothing is left to do, and tells whether it came to that. meddle is called
// before each of the first steps, to do harm.
func (w *world) run(meddle func()) (atRest bool) {
	members := w.workload.etcd.Members
	last := ""
	for step := range 1000 {
		w.now = w.now.Add(time.Minute)
		if step < calm {
			meddle()
		} else {
			clear(w.dead)
		}
		maps.Copy(w.dead, w.doomed)
		if len(w.replicas) > 0 && w.chance(60) {
			members = w.host(w.replicas[w.rng.IntN(len(w.replicas))], members)
		}
		w.look(members)
		p := makePlan(w.snapshot)
		if text := fmt.Sprint(summary(p), p.blocked); text != last {
			w.note("%3d %s", step, text)
			last = text
		}
		if w.t.Failed() {
			return false
		}
		going := slices.ContainsFunc(w.replicas, (*replica).deleting)
		if step > calm && summary(p) == "" && !going && len(members) == len(w.replicas) && len(unhealthy(w.snapshot, nil)) == 0 {
			return true
		}
		members = w.act(p, members)
		if w.checked && w.chance(50) {
			w.check()
		}
	}
	return false
}

func TestMachinesDeletedAtOnceLeaveOneByOneAndAreReplaced(t *testing.T) {
	for seed := range uint64(80) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			replicas := []int{3, 5}[seed%2]
			w := newWorld(t, seed, replicas)
			// All but one may be deleted. As many may be dead as etcd can do without.
			for _, i := range w.rng.Perm(replicas)[:1+w.rng.IntN(replicas-1)] {
				w.delete(w.replicas[i])
				w.note("a user deletes %s", w.replicas[i].machine.Name)
			}
			if !w.run(func() { w.kill((replicas - 1) / 2) }) {
				t.Errorf("the control plane has not come to rest: %v", makePlan(w.snapshot).blocked)
			}
			if len(w.replicas) != replicas {
				t.Errorf("%d Machines, want %d", len(w.replicas), replicas)
			}
		})
	}
}

func TestARolloutArrivesAndNeverCostsQuorum(t *testing.T) {
	for seed := range uint64(120) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			replicas := []int{1, 3, 5}[seed%3]
			w := newWorld(t, seed, replicas)
			surge := 1
			if replicas > 1 && w.chance(40) {
				surge = 0
			}
			w.controlPlane.Spec.Rollout.Strategy.RollingUpdate.MaxSurge = ptr.To(intstr.FromInt(surge))
			w.most = replicas + surge
			zones := []string{"a", "b", "c"}[:w.rng.IntN(4)]
			clusterDomains(zones...)(w.snapshot)
			for i, r := range w.replicas {
				if len(zones) > 0 {
					r.machine.Spec.FailureDomain = zones[i%len(zones)]
				}
			}
			w.change()
			if replicas > 1 && w.chance(30) {
				w.doom(w.rng.IntN(replicas))
			}
			arrived := w.run(func() {
				w.kill((replicas - 1) / 2)
				switch {
				case w.chance(2):
					w.change()
				case w.chance(3):
					w.delete(w.replicas[w.rng.IntN(len(w.replicas))])
				}
			})
			if !arrived {
				t.Fatalf("the rollout has not arrived: %v", makePlan(w.snapshot).blocked)
			}
			if len(w.replicas) != replicas {
				t.Errorf("%d Machines, want %d", len(w.replicas), replicas)
			}
			count := map[string]int{}
			for _, r := range w.replicas {
				count[r.machine.Spec.FailureDomain]++
				if text := differences(w.snapshot, r); len(text) > 0 {
					t.Errorf("%s is left behind: %v", r.machine.Name, text)
				}
			}
			for _, zone := range zones {
				if count[zone] > (replicas-1)/len(zones)+1 {
					t.Errorf("failure domains hold %v of %d", count, replicas)
				}
			}
		})
	}
}

func TestMachinesThatFailForGoodAreReplacedAndQuorumIsKept(t *testing.T) {
	for seed := range uint64(80) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			replicas := []int{3, 5}[seed%2]
			w := newWorld(t, seed, replicas)
			w.checked, w.most = true, replicas+1
			for _, i := range w.rng.Perm(replicas)[:(replicas-1)/2] {
				w.doom(i)
			}
			if w.chance(50) {
				w.delete(w.replicas[w.rng.IntN(replicas)])
			}
			if w.chance(30) {
				w.change()
			}
			if !w.run(func() {}) {
				t.Fatalf("the control plane has not come to rest: %+v", makePlan(w.snapshot))
			}
			if len(w.replicas) != replicas || len(w.doomed) != 0 {
				t.Errorf("%d Machines, want %d; not replaced: %v", len(w.replicas), replicas, w.doomed)
			}
		})
	}
}

// change is what a user writes to a KubeadmControlPlane so that all Machines are to be replaced.
func (w *world) change() {
	spec := &w.controlPlane.Spec
	switch w.rng.IntN(3) {
	case 0:
		spec.Version = fmt.Sprintf("v1.37.%d", 3+len(w.log))
	case 1:
		spec.KubeadmConfigSpec.PreKubeadmCommands = append(spec.KubeadmConfigSpec.PreKubeadmCommands, fmt.Sprint(len(w.log)))
	default:
		spec.Rollout.After = metav1.NewTime(w.now)
	}
	w.note("a user asks for version %s, commands %v, after %s", spec.Version, spec.KubeadmConfigSpec.PreKubeadmCommands, spec.Rollout.After)
}
