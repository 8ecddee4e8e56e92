package lifecycle_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/millwright-dev/millwright/internal/lifecycle"
)

// world is a deployment with its sets and Machines, in which things happen in any order: sets act late and on sizes that
// have changed since they looked, Machines come up, break and take their time to go, and users change their minds.
type world struct {
	rand             *rand.Rand
	replicas         int32
	bounds           lifecycle.Bounds
	onDelete, paused bool
	sets             []*worldSet // oldest first; the last is the current one
	next             int
	log              []string
	violation        string
	// least and most are the loosest bounds since all that was decided was carried out and seen; lost counts the
	// available Machines that broke since then, before those that
	// there were or could be.
	least, most, lost, before int32
}

type worldSet struct {
	lifecycle.RolloutSet
	machines []*worldMachine
	// seen is what the planner knows of the machines.
	seen []lifecycle.RolloutMachine
	// acting is the size that the set's controller has read and not yet acted on.
	acting *int32
}

type worldMachine struct{ available, deleting, marked bool }

func newWorld(seed uint64) *world {
	r := rand.New(rand.NewPCG(seed, 1))
	w := &world{rand: r, replicas: r.Int32N(12), onDelete: r.IntN(8) == 0}
	w.bounds = w.anyBounds()
	w.most = math.MaxInt32
	w.newTemplate()
	w.settle()
	for _, machine := range w.sets[0].machines {
		machine.available = true
	}
	w.carriedOut()
	return w
}

func (w *world) anyBounds() lifecycle.Bounds {
	if w.onDelete || w.replicas == 0 {
		return lifecycle.Bounds{}
	}
	b := lifecycle.Bounds{Surge: w.rand.Int32N(5), Unavailable: min(w.rand.Int32N(4), w.replicas)}
	if b == (lifecycle.Bounds{}) {
		b.Unavailable = 1
	}
	return b
}

func (w *world) newTemplate() {
	w.next++
	w.sets = append(w.sets, &worldSet{RolloutSet: lifecycle.RolloutSet{Name: fmt.Sprint("set-", w.next)}})
}

func (w *world) wanted() int32 { return w.replicas + w.bounds.Surge }

// needed is how many must be available. A rollout on deletion promises nothing: who deletes decides.
func (w *world) needed() int32 {
	if w.onDelete {
		return 0
	}
	return max(w.replicas-w.bounds.Unavailable, 0)
}
func (w *world) note(s string)      { w.log = append(w.log, s) }
func (w *world) current() *worldSet { return w.sets[len(w.sets)-1] }

func (w *world) String() string {
	var out string
	for _, set := range w.sets {
		out += fmt.Sprintf("%s: replicas %d, reported %d, settled %v, seen %v\n", set.Name, set.Replicas, set.Reported, set.Settled, set.seen)
	}
	return out
}

func (w *world) total() (n int32) {
	for _, set := range w.sets {
		n += int32(len(set.machines))
	}
	return n
}

func (w *world) available() (n int32) {
	for _, set := range w.sets {
		for _, machine := range set.machines {
			if machine.available && !machine.deleting {
				n++
			}
		}
	}
	return n
}

// plan asks for the next step and carries it out, or only a part: the operator may die in between.
func (w *world) plan(partly bool) {
	r := lifecycle.Rollout{Replicas: w.replicas, Bounds: w.bounds, OnDelete: w.onDelete, Paused: w.paused}
	for i, set := range w.sets {
		in := set.RolloutSet
		in.Machines = set.seen
		if i < len(w.sets)-1 {
			r.Old = append(r.Old, in)
		} else {
			r.Current = &in
		}
	}
	plan := lifecycle.PlanRollout(r)
	if plan.WaitsFor != "" {
		return
	}
	size := lifecycle.Size{Wanted: w.replicas, Most: w.wanted()}
	for _, i := range w.rand.Perm(len(w.sets)) {
		if partly && w.rand.IntN(2) == 0 {
			continue
		}
		set := w.sets[i]
		if replicas, ok := plan.Replicas[set.Name]; ok {
			w.note(fmt.Sprintf("%s: %d -> %d", set.Name, set.Replicas, replicas))
			set.Replicas, set.Settled = replicas, false
		}
		set.Sized = size
	}
}

// order sorts the machines of a set as its controller deletes them. In the current set what a user marked goes first,
// available or not; old sets lose everything in the end, and there it comes after what is not available.
func (w *world) order(set *worldSet) {
	rank := func(m *worldMachine) int {
		switch {
		case m.deleting:
			return 0
		case m.marked && set == w.current():
			return 1
		case !m.available:
			return 2
		case m.marked:
			return 3
		}
		return 4
	}
	slices.SortStableFunc(set.machines, func(a, b *worldMachine) int { return rank(a) - rank(b) })
}

// begin lets the controller of a set read its size, finish lets it act on what it read.
func (w *world) begin(set *worldSet) {
	size := set.Replicas
	set.acting = &size
}

func (w *world) finish(set *worldSet) {
	if set.acting == nil {
		return
	}
	size := int(*set.acting)
	set.acting = nil
	w.order(set)
	for i, machine := range set.machines {
		if i >= len(set.machines)-size || machine.deleting {
			continue
		}
		machine.deleting = true
		defer w.look(set)
		w.note(set.Name + ": delete")
		// That a user lowers the size after marking Machines is for these to go, whatever it costs.
		asked := machine.marked && set == w.current()
		if machine.available && !asked && w.available() < w.least-w.lost {
			w.violation = fmt.Sprintf("%s deleted an available Machine: %d are left of %d needed (%d broke)", set.Name, w.available(), w.least, w.lost)
		}
	}
	isOld := set != w.current()
	for len(set.machines) < size && !(w.onDelete && isOld) {
		set.machines = append(set.machines, &worldMachine{})
		w.note(set.Name + ": create")
	}
	if total := w.total(); total > max(w.most, w.before) {
		w.violation = fmt.Sprintf("%d Machines, %d allowed", total, w.most)
	}
	set.Reported = int32(len(set.machines))
	set.Settled = size == int(set.Replicas)
}

// look refreshes what the planner knows of a set's machines.
func (w *world) look(set *worldSet) {
	w.order(set)
	set.seen = nil
	for _, machine := range set.machines {
		set.seen = append(set.seen, lifecycle.RolloutMachine{Available: machine.available, Deleting: machine.deleting})
	}
}

// settle lets everybody finish what was decided.
func (w *world) settle() {
	w.plan(false)
	for _, set := range w.sets {
		w.finish(set)
		w.begin(set)
		w.finish(set)
	}
}

// carriedOut starts a new account of bounds once nothing is under way.
func (w *world) carriedOut() {
	for _, set := range w.sets {
		if !set.Settled || set.acting != nil || len(set.seen) != len(set.machines) {
			return
		}
		for i, machine := range set.machines {
			if set.seen[i] != (lifecycle.RolloutMachine{Available: machine.available, Deleting: machine.deleting}) {
				return
			}
		}
	}
	// What is not available now and recovers later may have been given up meanwhile.
	w.least, w.most, w.lost, w.before = min(w.needed(), w.available()), w.wanted(), 0, 0
	for _, set := range w.sets {
		w.before += max(int32(len(set.machines)), set.Replicas)
	}
}

// happen does one thing at random.
func (w *world) happen() {
	set := w.sets[w.rand.IntN(len(w.sets))]
	switch n := w.rand.IntN(40); {
	case n < 10:
		w.plan(w.rand.IntN(4) == 0)
	case n < 15 && set.acting == nil:
		w.begin(set)
	case n < 20:
		w.finish(set)
	case n < 24:
		w.look(set)
	case n < 29:
		w.comeUp(set)
	case n < 34:
		w.goAway(set)
	case n < 36:
		for _, machine := range set.machines {
			if w.rand.IntN(6) == 0 && machine.available {
				machine.available = false
				w.lost++
				w.note(set.Name + ": a Machine breaks")
			}
			if w.rand.IntN(20) == 0 && !machine.available {
				machine.marked = true
			}
		}
	case n < 37:
		w.newTemplate()
		w.note("new template")
	case n < 38:
		w.replicas = w.rand.Int32N(12)
		w.bounds = w.anyBounds()
		w.least, w.most = min(w.least, w.needed()), max(w.most, w.wanted())
		w.note(fmt.Sprintf("replicas %d, bounds %+v", w.replicas, w.bounds))
	case n < 39:
		w.paused = !w.paused
	default:
		w.deletedByHand(set, 3)
	}
	w.carriedOut()
}

// calm lets everybody do their part, more or less: Machines of old sets that are broken stay so.
func (w *world) calm() {
	for i, set := range w.sets {
		if w.rand.IntN(2) == 0 {
			w.finish(set)
			w.begin(set)
		}
		w.goAway(set)
		if i == len(w.sets)-1 {
			w.comeUp(set)
		} else if w.onDelete {
			w.deletedByHand(set, 1)
		}
		w.look(set)
	}
	w.carriedOut()
	w.plan(w.rand.IntN(4) == 0)
}

func (w *world) comeUp(set *worldSet) {
	for _, machine := range set.machines {
		machine.available = machine.available || w.rand.IntN(2) == 0
	}
}

func (w *world) goAway(set *worldSet) {
	set.machines = slices.DeleteFunc(set.machines, func(m *worldMachine) bool { return m.deleting && w.rand.IntN(2) == 0 })
}

func (w *world) deletedByHand(set *worldSet, oneIn int) {
	for _, machine := range set.machines {
		if w.rand.IntN(oneIn) > 0 || machine.deleting {
			continue
		}
		machine.deleting = true
		if machine.available {
			w.lost++
		}
	}
}

func (w *world) done() bool {
	for _, set := range w.sets[:len(w.sets)-1] {
		if set.Replicas != 0 || len(set.machines) != 0 {
			return false
		}
	}
	return w.current().Replicas == w.replicas && len(w.current().machines) == int(w.replicas)
}

func TestARolloutKeepsItsBoundsAndEndsWhateverHappens(t *testing.T) {
	first := rand.Uint64()
	worlds := uint64(4000)
	if testing.Short() {
		worlds = 400
	}
	for i := range worlds {
		seed := first + i
		w := newWorld(seed)
		fail := func(format string, args ...any) {
			t.Helper()
			t.Fatalf("seed %d: %s\n%d wanted, %+v, on deletion %v\n%s\n%v", seed, fmt.Sprintf(format, args...), w.replicas, w.bounds, w.onDelete, w, w.log)
		}
		for range 300 {
			w.happen()
			if w.violation != "" {
				fail("%s", w.violation)
			}
		}
		// Trouble ends: whatever state this is, the rollout must end too, without leaving its bounds.
		w.paused = false
		for rounds := 0; !w.done(); rounds++ {
			if rounds > 500 {
				fail("no end in sight")
			}
			w.calm()
			if w.violation != "" {
				fail("%s", w.violation)
			}
		}
	}
}
