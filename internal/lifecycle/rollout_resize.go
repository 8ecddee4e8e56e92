package lifecycle

import (
	"cmp"
	"math"
	"slices"
)

// resized tells whether the number wanted has changed since the sets were scaled, with more than one of them at work.
// The record is on the sets, so that a resize that was carried out in part is finished by the next step.
func (s *step) resized() bool {
	active, changed := 0, false
	for _, set := range s.scalable() {
		if set.planned > 0 {
			active++
			changed = changed || set.Sized != (Size{}) && set.Sized.Wanted != s.Rollout.Replicas
		}
	}
	return active > 1 && changed
}

// resizeAll spreads the difference in proportion to the sizes of the sets, as Deployments do: a rollout that turns out
// bad has then no larger share than before. The bounds hold all the same; what they forbid now is left to later steps.
func (s *step) resizeAll() {
	var total int32
	var active []*sizing
	for _, set := range s.scalable() {
		total += set.planned
		if set.planned > 0 {
			active = append(active, set)
		}
	}
	most := s.most()
	if s.Rollout.Replicas == 0 {
		most = 0
	}
	// Largest first: it bears the rounding. Of equals, the current set and then the newer gains first, and loses last.
	slices.Reverse(active[slices.Index(active, s.current)+1:])
	if total > most {
		slices.Reverse(active)
	}
	slices.SortStableFunc(active, func(a, b *sizing) int { return cmp.Compare(b.planned, a.planned) })

	if total > most {
		s.spread(active, total, most, total-most, func(set *sizing) bool { return set.planned > 0 && s.take(set) })
		return
	}
	room := s.most() - s.occupiedByOthers(nil)
	s.spread(active, total, most, min(most-total, max(room, 0)), func(set *sizing) bool { set.planned++; return true })
}

// spread moves the sets by delta in all: each by its share as far as move lets it, the rest by who can.
func (s *step) spread(active []*sizing, total, most, delta int32, move func(*sizing) bool) {
	shares := make([]int32, len(active))
	for i, set := range active {
		base := cmp.Or(set.Sized.Most, total)
		ideal := math.Round(float64(set.planned) * float64(most) / float64(base))
		shares[i] = int32(math.Abs(ideal - float64(set.planned)))
	}
	for i, set := range active {
		for ; shares[i] > 0 && delta > 0 && move(set); delta-- {
			shares[i]--
		}
	}
	for _, set := range active {
		for ; delta > 0 && move(set); delta-- {
		}
	}
}
