package state

import (
	"context"
	"slices"
	"sync"
	"time"
)

// saveEvery bounds how often the file is written while much changes.
const saveEvery = 100 * time.Millisecond

// Store holds the state of a running daemon and writes it as it changes.
type Store struct {
	dir     Dir
	mu      sync.Mutex
	state   State
	changed chan struct{}
}

// NewStore returns a Store that begins with s and has saved it.
func NewStore(dir Dir, s State) (*Store, error) {
	return &Store{dir: dir, state: s, changed: make(chan struct{}, 1)}, dir.Save(s)
}

// Update changes the state.
func (s *Store) Update(change func(*State)) {
	s.mu.Lock()
	change(&s.state)
	s.mu.Unlock()
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// Get returns a copy of the state.
func (s *Store) Get() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.state
	c.Steps, c.Programs = slices.Clone(c.Steps), slices.Clone(c.Programs)
	c.Machines, c.Endpoints = slices.Clone(c.Machines), slices.Clone(c.Endpoints)
	return c
}

// SetStep adds or replaces a step by its name.
func (s *Store) SetStep(step Step) {
	s.Update(func(st *State) {
		put(&st.Steps, step, func(step Step) string { return step.Name })
	})
}

// SetProgram adds or replaces a program by its name.
func (s *Store) SetProgram(p Program) {
	s.Update(func(st *State) {
		put(&st.Programs, p, func(p Program) string { return p.Name })
	})
}

// SetMachine adds or replaces a machine by its reference.
func (s *Store) SetMachine(m Machine) {
	s.Update(func(st *State) {
		put(&st.Machines, m, func(m Machine) string { return m.Ref })
	})
}

// RemoveMachine takes a machine away.
func (s *Store) RemoveMachine(ref string) {
	s.Update(func(st *State) {
		st.Machines = slices.DeleteFunc(st.Machines, func(m Machine) bool { return m.Ref == ref })
	})
}

// SetEndpoint adds, replaces or, without backends, removes an endpoint.
func (s *Store) SetEndpoint(e Endpoint) {
	s.Update(func(st *State) {
		if len(e.Backends) == 0 {
			st.Endpoints = slices.DeleteFunc(st.Endpoints, func(old Endpoint) bool { return old.Address == e.Address })
			return
		}
		put(&st.Endpoints, e, func(e Endpoint) string { return e.Address })
	})
}

// put replaces the element of the same key or appends a new one.
func put[T any](list *[]T, item T, key func(T) string) {
	i := slices.IndexFunc(*list, func(old T) bool { return key(old) == key(item) })
	if i < 0 {
		*list = append(*list, item)
		return
	}
	(*list)[i] = item
}

// Run writes changes until ctx is done, and the last of them then. report gets
// what fails.
func (s *Store) Run(ctx context.Context, report func(error)) {
	for {
		select {
		case <-ctx.Done():
			s.save(report)
			return
		case <-s.changed:
			s.save(report)
		}
		select {
		case <-ctx.Done():
		case <-time.After(saveEvery):
		}
	}
}

func (s *Store) save(report func(error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.dir.Save(s.state); err != nil {
		report(err)
	}
}
