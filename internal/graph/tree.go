package graph

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Node is a line of the tree: an object, several equal machines, or a heading.
type Node struct {
	// Role is the part an object plays in its cluster, or the heading.
	Role string `json:"role,omitempty"`
	Kind string `json:"kind,omitempty"`
	Name string `json:"name,omitempty"`
	// Names are those of a group of equal machines.
	Names   []string               `json:"names,omitempty"`
	Ready   metav1.ConditionStatus `json:"ready,omitempty"`
	Reason  string                 `json:"reason,omitempty"`
	Message string                 `json:"message,omitempty"`
	Since   *time.Time             `json:"since,omitempty"`
	// Doing are the names of what its controller is at, such as RollingOut; the
	// message is then about that.
	Doing    []string  `json:"doing,omitempty"`
	Phase    string    `json:"phase,omitempty"`
	Version  string    `json:"version,omitempty"`
	Replicas *Replicas `json:"replicas,omitempty"`
	Deleting bool      `json:"deleting,omitempty"`
	// Behind marks the objects of a machine.
	Behind   bool    `json:"-"`
	Paused   bool    `json:"paused,omitempty"`
	Children []*Node `json:"children,omitempty"`
}

// The parts of a cluster.
const (
	RoleInfrastructure = "Infrastructure"
	RoleControlPlane   = "ControlPlane"
	RoleWorkers        = "Workers"
	RoleBootstrap      = "Bootstrap"
)

// TreeOptions choose how much the tree shows.
type TreeOptions struct {
	// All shows every object and each machine by itself. Else equal machines are
	// grouped, and what is fine and has no news is left out.
	All bool
}

// Tree returns the cluster as people think of it: infrastructure, control plane
// and workers, each with what it owns.
func (g *Graph) Tree(opts TreeOptions) *Node {
	t := treeBuilder{Graph: g, opts: opts}
	cluster := g.Spec()
	root := t.node(g.Cluster, "")
	root.Phase = cluster.Status.Phase

	if infra := g.Lookup(cluster.Spec.InfrastructureRef); infra != nil {
		root.add(t.node(infra, RoleInfrastructure))
	}
	root.add(t.controlPlane(cluster))
	root.add(t.workers(cluster))
	for _, check := range g.OfKind("MachineHealthCheck") {
		if node := t.node(check, ""); opts.All || node.Ready == metav1.ConditionFalse {
			root.add(node)
		}
	}
	return root
}

type treeBuilder struct {
	*Graph
	opts TreeOptions
}

func (n *Node) add(children ...*Node) {
	for _, child := range children {
		if child != nil {
			n.Children = append(n.Children, child)
		}
	}
}

// node returns the node of one object, without what it owns.
func (t *treeBuilder) node(o *Object, role string) *Node {
	state := o.State()
	n := &Node{
		Role: role, Kind: o.Kind.Kind, Name: o.GetName(),
		Ready: state.Ready, Reason: state.Reason, Message: state.Message, Doing: state.Doing,
		Version: o.Version(), Replicas: o.Replicas(), Deleting: state.Deleting, Paused: state.Paused,
	}
	if !state.Since.IsZero() {
		n.Since = &state.Since
	}
	return n
}

// controlPlane returns the object that manages the control plane with its
// machines, or a heading over machines that nobody manages.
func (t *treeBuilder) controlPlane(cluster *clusterv1.Cluster) *Node {
	if object := t.Lookup(cluster.Spec.ControlPlaneRef); object != nil {
		n := t.node(object, RoleControlPlane)
		n.add(t.machines(t.Machines(object))...)
		return n
	}
	machines := t.machines(t.unowned(true))
	if len(machines) == 0 {
		return nil
	}
	n := &Node{Role: RoleControlPlane}
	n.add(machines...)
	return n
}

// workers returns the heading over all that runs workloads.
func (t *treeBuilder) workers(cluster *clusterv1.Cluster) *Node {
	heading := &Node{Role: RoleWorkers}
	if available := find(cluster.Status.Conditions, clusterv1.ClusterWorkersAvailableCondition); available != nil {
		heading.Ready, heading.Reason, heading.Message = available.Status, available.Reason, available.Message
		heading.Since = &available.LastTransitionTime.Time
	}
	if status := cluster.Status.Workers; status != nil {
		heading.Replicas = &Replicas{status.DesiredReplicas, status.Replicas, status.ReadyReplicas, status.UpToDateReplicas}
	}
	for _, deployment := range t.OfKind("MachineDeployment") {
		n := t.node(deployment, "")
		n.Phase = deployment.Object.(*clusterv1.MachineDeployment).Status.Phase
		n.add(t.deployed(deployment)...)
		heading.add(n)
	}
	for _, set := range t.OfKind("MachineSet") {
		if set.Owner == nil || set.Owner.Kind.Kind != "MachineDeployment" {
			heading.add(t.set(set))
		}
	}
	for _, pool := range t.OfKind("MachinePool") {
		heading.add(t.node(pool, ""))
	}
	heading.add(t.machines(t.unowned(false))...)
	if len(heading.Children) == 0 {
		return nil
	}
	return heading
}

// deployed returns the machines of a deployment: by set while there are several
// with machines, as in a rollout.
func (t *treeBuilder) deployed(deployment *Object) []*Node {
	var sets, busy []*Object
	for _, owned := range deployment.Owned {
		if _, ok := owned.Object.(*clusterv1.MachineSet); !ok {
			continue
		}
		sets = append(sets, owned)
		if len(t.Machines(owned)) > 0 {
			busy = append(busy, owned)
		}
	}
	switch {
	case t.opts.All:
		busy = sets
	case len(busy) < 2:
		return t.machines(t.Machines(deployment))
	}
	var nodes []*Node
	for _, set := range busy {
		nodes = append(nodes, t.set(set))
	}
	return nodes
}

func (t *treeBuilder) set(set *Object) *Node {
	n := t.node(set, "")
	n.add(t.machines(t.Machines(set))...)
	return n
}

// machines returns the nodes of machines, equal ones grouped.
func (t *treeBuilder) machines(machines []*Object) []*Node {
	nodes := make([]*Node, 0, len(machines))
	for _, m := range machines {
		nodes = append(nodes, t.machine(m))
	}
	if t.opts.All {
		return nodes
	}
	return group(nodes)
}

// machine returns the node of a machine, with the objects behind it that are not
// ready: they hold the cause.
func (t *treeBuilder) machine(o *Object) *Node {
	n := t.node(o, "")
	machine := o.Object.(*clusterv1.Machine)
	n.Phase = machine.Status.Phase
	behind := []struct {
		role string
		ref  clusterv1.ContractVersionedObjectReference
	}{{RoleInfrastructure, machine.Spec.InfrastructureRef}, {RoleBootstrap, machine.Spec.Bootstrap.ConfigRef}}
	for _, b := range behind {
		object := t.Lookup(b.ref)
		if object == nil {
			continue
		}
		child := t.node(object, b.role)
		child.Behind = true
		if t.opts.All || (n.Ready != metav1.ConditionTrue && child.Ready != metav1.ConditionTrue) {
			n.add(child)
		}
	}
	return n
}

// unowned returns machines that no other object of the cluster manages.
func (t *treeBuilder) unowned(controlPlane bool) []*Object {
	machines := slices.DeleteFunc(t.OfKind("Machine"), func(m *Object) bool {
		_, isControlPlane := m.GetLabels()[clusterv1.MachineControlPlaneLabel]
		managed := m.Owner != nil && m.Owner != t.Cluster
		return managed || isControlPlane != controlPlane
	})
	return machines
}
