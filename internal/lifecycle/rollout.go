package lifecycle

// Rollout is what the sizes of a deployment's MachineSets are decided from.
type Rollout struct {
	// Replicas is how many Machines are wanted in all.
	Replicas int32
	Bounds   Bounds
	// OnDelete leaves the Machines of old sets until somebody deletes them.
	OnDelete bool
	// Paused keeps the sets' shares as they are: only a change of Replicas is followed.
	Paused bool
	// Current is the set of the wanted template. It is nil only in a paused rollout that has none.
	Current *RolloutSet
	// Old are the other sets, the oldest first.
	Old []RolloutSet
}

// RolloutSet is one MachineSet in a rollout.
type RolloutSet struct {
	Name string
	// Replicas is its spec.replicas, Reported its status.replicas.
	Replicas, Reported int32
	// Machines that it controls, in the order in which it would delete them.
	Machines []RolloutMachine
	// Settled tells that its controller has acted on Replicas. Before that, Machines may appear or go that nobody has
	// seen yet.
	Settled bool
	// Deleting sets cannot be scaled. Their Machines count until they are gone.
	Deleting bool
	// Sized is the size of the deployment for which the set was scaled last; zero where that is not recorded.
	Sized Size
}

// RolloutMachine is one Machine of a set.
type RolloutMachine struct {
	Available, Deleting bool
}

// Size is that of a deployment: the Machines wanted, and the most that there may be during a rollout.
type Size struct {
	Wanted, Most int32
}

// RolloutPlan is the next step of a rollout.
type RolloutPlan struct {
	// Replicas holds the new spec.replicas of the sets that change, by name.
	Replicas map[string]int32
	// WaitsFor names a set whose controller has not yet acted on its size: until then nothing is decided. Its status
	// moves when it has.
	WaitsFor string
}

// PlanRollout decides the next step. Each step may be carried out in part and in any order; the next is decided from
// what there is then. Between steps these hold, beyond what is out of bounds already:
//   - never fewer Machines available than Replicas less Unavailable;
//   - never more Machines than Replicas plus Surge. Those being deleted count until they are gone, for their hosts use
//     what others would need.
//
// A set deletes its Machines in the order given, which puts the unavailable ones first.
func PlanRollout(r Rollout) RolloutPlan {
	s := newStep(r)
	if unsettled := s.unsettled(); unsettled != "" {
		return RolloutPlan{WaitsFor: unsettled}
	}
	switch {
	case s.single() != nil:
		s.resizeSingle()
	case r.OnDelete && s.current != nil:
		s.followDeletions()
	case s.resized():
		s.resizeAll()
	case r.Paused:
	default:
		s.grow()
		s.shrink()
	}
	return RolloutPlan{Replicas: s.changes()}
}

// step is a plan in the making.
type step struct {
	Rollout
	// current is nil where there is none; old holds the sets that can be scaled; gone those being deleted.
	current   *sizing
	old, gone []*sizing
	// available is how many Machines will be once the sets have their planned sizes.
	available int32
}

// sizing is the planned size of one set.
type sizing struct {
	RolloutSet
	planned int32
}

func newStep(r Rollout) *step {
	s := &step{Rollout: r}
	add := func(set RolloutSet) *sizing {
		out := &sizing{RolloutSet: set, planned: set.Replicas}
		if set.Deleting {
			out.planned = 0
		}
		for _, machine := range set.Machines[min(out.firstKept(), len(set.Machines)):] {
			if machine.Available && !machine.Deleting {
				s.available++
			}
		}
		return out
	}
	if r.Current != nil {
		s.current = add(*r.Current)
	}
	for _, set := range r.Old {
		if set.Deleting {
			s.gone = append(s.gone, add(set))
		} else {
			s.old = append(s.old, add(set))
		}
	}
	return s
}

// firstKept is the index of the first Machine that the planned size leaves.
func (s *sizing) firstKept() int {
	return max(len(s.Machines)-int(s.planned), 0)
}

// occupied is the most Machines that a set may have now: those it has, and those it may make.
func (s *sizing) occupied() int32 {
	have := max(int32(len(s.Machines)), s.Reported)
	if s.Deleting {
		return have
	}
	return max(have, s.Replicas)
}

// costs tells whether the set would lose an available Machine if its planned size were one less.
func (s *sizing) costs() bool {
	if int(s.planned) > len(s.Machines) {
		return false
	}
	next := s.Machines[s.firstKept()]
	return next.Available && !next.Deleting
}

func (s *step) scalable() []*sizing {
	if s.current == nil {
		return s.old
	}
	return append([]*sizing{s.current}, s.old...)
}

// unsettled returns the name of a set to wait for. A set alone needs no waiting: what it does concerns no other.
func (s *step) unsettled() string {
	alone := true
	for _, set := range append(append([]*sizing{}, s.old...), s.gone...) {
		if !set.Settled && !set.Deleting {
			return set.Name
		}
		alone = alone && set.occupied() == 0
	}
	if s.current != nil && !s.current.Settled && !alone {
		return s.current.Name
	}
	return ""
}

// single returns the set that takes all Machines because no other has any: the current one, or in a paused rollout the
// one with Machines, else the newest. Nil means that the Machines are shared.
func (s *step) single() *sizing {
	var active []*sizing
	for _, set := range s.scalable() {
		if set.occupied() > 0 {
			active = append(active, set)
		}
	}
	switch {
	case len(active) == 1 && (active[0] == s.current || s.Paused):
		return active[0]
	case len(active) > 0:
		return nil
	case s.current != nil:
		return s.current
	case len(s.old) > 0:
		return s.old[len(s.old)-1]
	}
	return nil
}

// resizeSingle follows the number wanted. Only Machines of sets being deleted can be in the way.
func (s *step) resizeSingle() {
	set := s.single()
	if set.planned >= s.Rollout.Replicas {
		set.planned = s.Rollout.Replicas
		return
	}
	set.planned = min(s.Rollout.Replicas, max(set.planned, s.most()-s.occupiedByOthers(set)))
}

// grow raises the current set as far as there is room for Machines, or lowers it where fewer are wanted.
func (s *step) grow() {
	for s.current.planned > s.Rollout.Replicas && s.take(s.current) {
	}
	if room := s.most() - s.occupiedByOthers(s.current); room > s.current.planned && s.current.planned < s.Rollout.Replicas {
		s.current.planned = min(s.Rollout.Replicas, room)
	}
}

// shrink lowers the old sets: first by what is not available, then by what others have replaced. What is not available
// may recover, so as many are left as are needed to be enough together with those of the current set that are.
func (s *step) shrink() {
	spare := -s.least()
	for _, set := range s.old {
		spare += set.planned
	}
	for _, machine := range s.current.Machines[min(s.current.firstKept(), len(s.current.Machines)):] {
		if machine.Available && !machine.Deleting {
			spare++
		}
	}
	for _, free := range []bool{true, false} {
		for _, set := range s.old {
			for spare > 0 && set.planned > 0 && (!free || !set.costs()) && s.take(set) {
				spare--
			}
		}
	}
}

// followDeletions lets the current set take the places of Machines that were deleted from old ones.
func (s *step) followDeletions() {
	surplus := s.current.planned - s.Rollout.Replicas
	for _, set := range s.old {
		set.planned = min(set.planned, max(int32(len(set.Machines)), set.Reported))
		surplus += set.planned
	}
	for _, set := range append(append([]*sizing{}, s.old...), s.current) {
		cut := min(max(surplus, 0), set.planned)
		set.planned -= cut
		surplus -= cut
	}
	if room := s.Rollout.Replicas - s.occupiedByOthers(s.current); room > s.current.planned {
		s.current.planned = room
	}
}

// take lowers a set by one, unless too few Machines would be left available.
func (s *step) take(set *sizing) bool {
	if set.costs() {
		if s.available <= s.least() {
			return false
		}
		s.available--
	}
	set.planned--
	return true
}

// most is how many Machines there may be, least how many must be available.
func (s *step) most() int32  { return s.Rollout.Replicas + s.Bounds.Surge }
func (s *step) least() int32 { return max(s.Rollout.Replicas-s.Bounds.Unavailable, 0) }

func (s *step) occupiedByOthers(than *sizing) int32 {
	var sum int32
	for _, set := range append(s.scalable(), s.gone...) {
		if set != than {
			sum += set.occupied()
		}
	}
	return sum
}

func (s *step) changes() map[string]int32 {
	changes := map[string]int32{}
	for _, set := range s.scalable() {
		if set.planned != set.RolloutSet.Replicas {
			changes[set.Name] = set.planned
		}
	}
	return changes
}
