package graph

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// groupFrom is how many equal machines are drawn as one line. Fewer are as easy
// to read by name.
const groupFrom = 5

// alike is what two machines must share to be drawn as one.
type alike struct {
	ready    metav1.ConditionStatus
	reason   string
	phase    string
	version  string
	deleting bool
	paused   bool
}

// group draws equal machines together, at the place of the first. Messages may
// differ, they often hold the name of the machine: the first stands for all.
func group(machines []*Node) []*Node {
	members := map[alike][]*Node{}
	for _, m := range machines {
		key := m.alike()
		members[key] = append(members[key], m)
	}
	var nodes []*Node
	drawn := map[alike]bool{}
	for _, m := range machines {
		key := m.alike()
		same := members[key]
		switch {
		case len(same) < groupFrom:
			nodes = append(nodes, m)
		case !drawn[key]:
			drawn[key] = true
			nodes = append(nodes, together(same))
		}
	}
	return nodes
}

func (n *Node) alike() alike {
	return alike{n.Ready, n.Reason, n.Phase, n.Version, n.Deleting, n.Paused}
}

// together makes one node of equal machines. It is since when the last of them
// became so.
func together(machines []*Node) *Node {
	first := *machines[0]
	first.Name, first.Children = "", nil
	for _, m := range machines {
		first.Names = append(first.Names, m.Name)
		if m.Since != nil && (first.Since == nil || m.Since.After(*first.Since)) {
			first.Since = m.Since
		}
	}
	return &first
}
