package lifecycle_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millwright-dev/millwright/internal/lifecycle"
)

// set returns a settled set whose Machines are written one character each, in the order of their deletion: d being
// deleted, - not available, a available.
func set(name string, replicas int32, machines string, change ...func(*lifecycle.RolloutSet)) lifecycle.RolloutSet {
	out := lifecycle.RolloutSet{Name: name, Replicas: replicas, Reported: int32(len(machines)), Settled: true}
	for _, c := range machines {
		out.Machines = append(out.Machines, lifecycle.RolloutMachine{Available: c == 'a', Deleting: c == 'd'})
	}
	for _, f := range change {
		f(&out)
	}
	return out
}

func sized(wanted, most int32) func(*lifecycle.RolloutSet) {
	return func(s *lifecycle.RolloutSet) { s.Sized = lifecycle.Size{Wanted: wanted, Most: most} }
}
func unsettled(s *lifecycle.RolloutSet) { s.Settled = false }
func goingAway(s *lifecycle.RolloutSet) { s.Deleting = true }
func reported(n int32) func(*lifecycle.RolloutSet) {
	return func(s *lifecycle.RolloutSet) { s.Reported = n }
}

func many(c string, n int) string { return strings.Repeat(c, n) }

func TestPlanRolloutTakesTheNextStep(t *testing.T) {
	type sets = []lifecycle.RolloutSet
	type sizes = map[string]int32
	surge := func(n int32) lifecycle.Bounds { return lifecycle.Bounds{Surge: n} }
	unavailable := func(n int32) lifecycle.Bounds { return lifecycle.Bounds{Unavailable: n} }

	cases := map[string]struct {
		replicas         int32
		bounds           lifecycle.Bounds
		onDelete, paused bool
		current          lifecycle.RolloutSet
		noCurrent        bool
		old              sets
		want             sizes
		wantWaits        string
	}{
		// One set.
		"the only set takes all": {replicas: 3, bounds: surge(1), current: set("new", 0, ""), want: sizes{"new": 3}},
		"the only set shrinks at once, available or not": {
			replicas: 2, bounds: surge(1), current: set("new", 5, "-aaaa"), want: sizes{"new": 2},
		},
		"history at 0 does not hold up scaling": {
			replicas: 4, bounds: surge(1), current: set("new", 3, "aaa", unsettled), old: sets{set("old", 0, "")}, want: sizes{"new": 4},
		},
		"Machines of a set being deleted take room": {
			replicas: 4, bounds: surge(1), current: set("new", 0, ""), old: sets{set("gone", 3, "aaa", goingAway)}, want: sizes{"new": 2},
		},

		// A rolling update.
		"surge first": {
			replicas: 10, bounds: surge(3), current: set("new", 0, ""), old: sets{set("old", 10, many("a", 10))}, want: sizes{"new": 3},
		},
		"nothing goes before the new ones are available": {
			replicas: 10, bounds: surge(3), current: set("new", 3, "---"), old: sets{set("old", 10, many("a", 10))},
		},
		"as many go as are replaced": {
			replicas: 10, bounds: surge(3), current: set("new", 3, "-aa"), old: sets{set("old", 10, many("a", 10))}, want: sizes{"old": 8},
		},
		"those being deleted still count": {
			replicas: 10, bounds: surge(3), current: set("new", 3, "-aa"), old: sets{set("old", 8, "dd"+many("a", 8))},
		},
		"the next come when they are gone": {
			replicas: 10, bounds: surge(3), current: set("new", 3, "-aa"), old: sets{set("old", 8, many("a", 8))}, want: sizes{"new": 5},
		},
		"what the set reports counts, seen or not": {
			replicas: 10, bounds: surge(3), current: set("new", 3, "-aa"), old: sets{set("old", 8, many("a", 8), reported(10))},
		},
		"without surge the old go first": {
			replicas: 3, bounds: unavailable(1), current: set("new", 0, ""), old: sets{set("old", 3, "aaa")}, want: sizes{"old": 2},
		},
		"what is unavailable goes first and costs nothing": {
			replicas: 3, bounds: surge(1), current: set("new", 1, "a"), old: sets{set("old", 3, "-aa")}, want: sizes{"old": 2},
		},
		"what is unavailable may recover while the new ones are no better": {
			replicas: 3, bounds: surge(1), current: set("new", 1, "-"), old: sets{set("old", 3, "-aa")},
		},
		"of a rollout that was given up, the broken go at once": {
			replicas: 10, bounds: surge(3), current: set("new", 0, ""), old: sets{set("oldest", 10, many("a", 10)), set("broken", 3, "---")},
			want: sizes{"broken": 0},
		},
		"the oldest goes first": {
			replicas: 4, bounds: surge(2), current: set("new", 2, "aa"), old: sets{set("oldest", 2, "aa"), set("older", 2, "aa")},
			want: sizes{"oldest": 0},
		},
		"an available one marked to go first is spared as long as it is needed": {
			replicas: 3, bounds: surge(1), current: set("new", 1, "-"), old: sets{set("old", 3, "a-a")},
		},
		"a set that has not acted is waited for": {
			replicas: 10, bounds: surge(3), current: set("new", 3, "---"), old: sets{set("old", 8, many("a", 10), unsettled)}, wantWaits: "old",
		},
		"even at 0": {
			replicas: 10, bounds: surge(3), current: set("new", 0, ""), old: sets{set("old", 10, many("a", 10)), set("broken", 0, "", unsettled)},
			wantWaits: "broken",
		},
		"the end": {
			replicas: 3, bounds: surge(1), current: set("new", 3, "aaa"), old: sets{set("old", 1, "a")}, want: sizes{"old": 0},
		},

		// A change of replicas while sets share them.
		"more replicas are shared in proportion": {
			replicas: 20, bounds: surge(2), current: set("new", 4, "aaaa", sized(10, 12)), old: sets{set("old", 8, many("a", 8), sized(10, 12))},
			want: sizes{"new": 7, "old": 15},
		},
		"fewer replicas are taken in proportion": {
			replicas: 5, bounds: surge(1), current: set("new", 4, "aaaa", sized(10, 12)), old: sets{set("old", 8, many("a", 8), sized(10, 12))},
			want: sizes{"new": 2, "old": 4},
		},
		"a resize carried out in part is finished": {
			replicas: 20, bounds: surge(2), current: set("new", 4, "aaaa", sized(10, 12)), old: sets{set("old", 15, many("a", 15), sized(20, 22))},
			want: sizes{"new": 7},
		},
		"fewer replicas do not cost availability": {
			replicas: 8, bounds: lifecycle.Bounds{}, current: set("new", 4, "----", sized(10, 10)), old: sets{set("old", 6, many("a", 6), sized(10, 10))},
			want: sizes{"new": 2},
		},
		"none wanted takes all": {
			replicas: 0, current: set("new", 4, "aaaa", sized(10, 12)), old: sets{set("old", 8, many("a", 8), sized(10, 12))},
			want: sizes{"new": 0, "old": 0},
		},
		"more replicas with one old set go to the new one": {
			replicas: 15, bounds: surge(1), current: set("new", 0, "", sized(15, 16)), old: sets{set("old", 10, many("a", 10), sized(10, 11))},
			want: sizes{"new": 6},
		},

		// Paused.
		"paused: no step": {
			replicas: 10, bounds: surge(3), paused: true, current: set("new", 3, "aaa", sized(10, 13)),
			old: sets{set("old", 10, many("a", 10), sized(10, 13))},
		},
		"paused: scaling goes on in proportion": {
			replicas: 5, bounds: surge(1), paused: true, current: set("new", 4, "aaaa", sized(10, 12)), old: sets{set("old", 8, many("a", 8), sized(10, 12))},
			want: sizes{"new": 2, "old": 4},
		},
		"paused before the rollout began: the old set is scaled": {
			replicas: 5, bounds: surge(1), paused: true, noCurrent: true, old: sets{set("oldest", 0, ""), set("old", 3, "aaa")}, want: sizes{"old": 5},
		},
		"paused with nothing running: the newest set is scaled": {
			replicas: 5, bounds: surge(1), paused: true, noCurrent: true, old: sets{set("oldest", 0, ""), set("old", 0, "")}, want: sizes{"old": 5},
		},
		"paused with no set at all": {replicas: 5, paused: true, noCurrent: true},

		// On deletion.
		"on deletion: nothing goes by itself": {
			replicas: 3, onDelete: true, current: set("new", 0, ""), old: sets{set("old", 3, "aaa")},
		},
		"on deletion: being deleted is not deleted": {
			replicas: 3, onDelete: true, current: set("new", 0, ""), old: sets{set("old", 3, "daa")},
		},
		"on deletion: the old set gives the place up": {
			replicas: 3, onDelete: true, current: set("new", 0, ""), old: sets{set("old", 3, "aa")}, want: sizes{"old": 2},
		},
		"on deletion: the new set takes the place": {
			replicas: 3, onDelete: true, current: set("new", 0, ""), old: sets{set("old", 2, "aa")}, want: sizes{"new": 1},
		},
		"on deletion: more replicas are new": {
			replicas: 5, onDelete: true, current: set("new", 1, "a"), old: sets{set("old", 2, "aa")}, want: sizes{"new": 3},
		},
		"on deletion: fewer replicas take the old first": {
			replicas: 2, onDelete: true, current: set("new", 2, "aa"), old: sets{set("oldest", 1, "a"), set("old", 2, "aa")}, want: sizes{"oldest": 0, "old": 0},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := lifecycle.Rollout{Replicas: tc.replicas, Bounds: tc.bounds, OnDelete: tc.onDelete, Paused: tc.paused, Current: &tc.current, Old: tc.old}
			if tc.noCurrent {
				r.Current = nil
			}
			got := lifecycle.PlanRollout(r)
			want := tc.want
			if want == nil && tc.wantWaits == "" {
				want = sizes{}
			}
			if diff := cmp.Diff(lifecycle.RolloutPlan{Replicas: want, WaitsFor: tc.wantWaits}, got); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}
