package controlplane

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millwright-dev/millwright/internal/etcd"
)

// fakeEtcd answers for the members of a control plane and records what is asked of whom.
type fakeEtcd struct {
	mu      sync.Mutex
	silent  map[string]bool
	refuses string
	done    []string
}

func (f *fakeEtcd) reach(node string) (member, error) {
	if f.silent[node] {
		return nil, fmt.Errorf("%s is silent", node)
	}
	return &fakeMember{etcd: f, node: node}, nil
}

type fakeMember struct {
	etcd *fakeEtcd
	node string
}

func (m *fakeMember) note(format string, args ...any) error {
	m.etcd.mu.Lock()
	defer m.etcd.mu.Unlock()
	text := m.node + ": " + fmt.Sprintf(format, args...)
	if m.etcd.refuses != "" && strings.Contains(text, m.etcd.refuses) {
		return errors.New("refused")
	}
	m.etcd.done = append(m.etcd.done, text)
	return nil
}

func (m *fakeMember) Status(context.Context) (etcd.Status, error)     { return etcd.Status{}, nil }
func (m *fakeMember) MoveLeader(_ context.Context, to uint64) error   { return m.note("move to %d", to) }
func (m *fakeMember) RemoveMember(_ context.Context, id uint64) error { return m.note("remove %d", id) }
func (m *fakeMember) Close()                                          {}

func TestAMachineLeavesEtcdInOrderOrNotAtAll(t *testing.T) {
	tests := map[string]struct {
		s       *snapshot
		leaving int
		etcd    *fakeEtcd
		want    []string
		err     string
	}{
		"a follower is removed by another":       {prod(3, 3, going(1, true)), 1, &fakeEtcd{}, []string{"cp-1: remove 2"}, ""},
		"a leader hands over first":              {prod(3, 3, going(0, true)), 0, &fakeEtcd{}, []string{"cp-1: move to 2", "cp-2: remove 1"}, ""},
		"a leader that does not let go stays":    {prod(3, 3, going(0, true)), 0, &fakeEtcd{refuses: "move"}, nil, "move etcd's leadership"},
		"a dead one needs not answer":            {prod(3, 3, going(2, true)), 2, &fakeEtcd{silent: map[string]bool{"cp-3": true}}, []string{"cp-1: remove 3"}, ""},
		"one that has left already":              {prod(3, 3, going(2, true), func(s *snapshot) { dropMember(s, "cp-3") }), 2, &fakeEtcd{}, nil, ""},
		"the next one is asked when one refuses": {prod(3, 3, going(2, true)), 2, &fakeEtcd{refuses: "cp-1"}, []string{"cp-2: remove 3"}, ""},
		"a host that has just died keeps it":     {prod(3, 3, going(2, true)), 2, &fakeEtcd{silent: map[string]bool{"cp-2": true}}, nil, "1 of the 2 members that would be left answer, 2 must"},
		"of five one may have died besides":      {prod(5, 5, going(4, true)), 4, &fakeEtcd{silent: map[string]bool{"cp-1": true}}, []string{"cp-2: remove 5"}, ""},
		"of five two dead ones keep it":          {prod(5, 5, going(4, true)), 4, &fakeEtcd{silent: map[string]bool{"cp-1": true, "cp-2": true}}, nil, "2 of the 4 members"},
		"one that learns need not answer":        {prod(4, 3, going(0, true), func(s *snapshot) { s.workload.etcd.Members[3].Learner, s.workload.etcd.Leader = true, 2 }), 0, &fakeEtcd{silent: map[string]bool{"cp-4": true}}, []string{"cp-2: remove 1"}, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := leaveEtcd(t.Context(), tc.s, tc.s.replicas[tc.leaving], tc.etcd.reach)
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("error %v, want %q", err, tc.err)
			}
			if diff := cmp.Diff(tc.want, tc.etcd.done); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
