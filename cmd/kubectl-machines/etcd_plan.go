package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// defragOrder returns the members in the order in which to defragment them: followers first and the leader last, since
// a member does not answer meanwhile. It refuses while a member is not well: that one and the one at work would be two.
func defragOrder(members []etcdMember) ([]etcdMember, error) {
	if problem := unwell(members); problem != "" {
		return nil, fmt.Errorf("%s: nothing is defragmented while a member is not well", problem)
	}
	order := slices.Clone(members)
	slices.SortStableFunc(order, func(a, b etcdMember) int { return cmp.Compare(rank(a), rank(b)) })
	return order, nil
}

func rank(m etcdMember) int {
	if m.leads() {
		return 1
	}
	return 0
}

// unwell says what is wrong with the first member that is not well; empty when all are.
func unwell(members []etcdMember) string {
	for _, m := range members {
		if troubles := memberTroubles(m, members); len(troubles) > 0 {
			return fmt.Sprintf("etcd member %q: %s", cmp.Or(m.node, m.machine.Name), strings.Join(troubles, "; "))
		}
	}
	return ""
}

// memberTroubles are what keeps a member from being well. NOSPACE does not: defragmenting is its remedy.
func memberTroubles(m etcdMember, all []etcdMember) []string {
	if m.err != nil {
		return []string{oneLine(m.err.Error())}
	}
	var troubles []string
	for _, trouble := range m.report.Errors {
		if !strings.Contains(trouble, "NOSPACE") {
			troubles = append(troubles, trouble)
		}
	}
	if m.report.Leader == 0 && len(troubles) == 0 {
		troubles = append(troubles, "it knows no leader")
	}
	for _, other := range all {
		if other.err == nil && other.report.Leader != 0 && m.report.Leader != 0 && other.report.Leader != m.report.Leader {
			troubles = append(troubles, "members do not agree on the leader")
			break
		}
	}
	return troubles
}

// snapshotSource chooses whom to copy: a follower rather than the leader, which has more to do, and of those the one
// that has seen the most.
func snapshotSource(members []etcdMember) (etcdMember, error) {
	var best *etcdMember
	var failures []string
	for i, m := range members {
		switch {
		case m.err != nil:
			failures = append(failures, oneLine(m.err.Error()))
		case m.report.Leader == 0:
			failures = append(failures, fmt.Sprintf("etcd member %q knows no leader", m.node))
		case m.report.Learner:
			failures = append(failures, fmt.Sprintf("etcd member %q is a learner", m.node))
		case best == nil || rank(m) < rank(*best) || rank(m) == rank(*best) && m.report.Revision > best.report.Revision:
			best = &members[i]
		}
	}
	if best == nil {
		return etcdMember{}, fmt.Errorf("there is no member to copy: %s", strings.Join(failures, "; "))
	}
	return *best, nil
}

// bytesText is a size in units of 1024.
func bytesText(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	value, prefix := float64(n)/unit, 0
	for value >= unit && prefix < 3 {
		value, prefix = value/unit, prefix+1
	}
	return fmt.Sprintf("%.1f %ciB", value, "KMGT"[prefix])
}
