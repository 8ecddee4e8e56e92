package vcenter

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// TaskState is how far a task is.
type TaskState string

// States of a task.
const (
	TaskRunning   TaskState = "running"
	TaskSucceeded TaskState = "succeeded"
	TaskFailed    TaskState = "failed"
)

// TaskKind is what a task does.
type TaskKind string

// Kinds of tasks.
const (
	TaskClone     TaskKind = "clone"
	TaskConfigure TaskKind = "configure"
	TaskPowerOn   TaskKind = "power on"
	TaskPowerOff  TaskKind = "power off"
	TaskDestroy   TaskKind = "destroy"
)

// Task is a task that an owner has in vCenter. An owner has one at a time.
type Task struct {
	// Ref is the managed object id, such as "task-12".
	Ref  string
	Kind TaskKind
	// What is the task in words, to be read after "to".
	What  string
	State TaskState
	// Err is set when the task failed.
	Err error
}

// tasks remembers the tasks of owners and hands out slots for clones.
type tasks struct {
	mu      sync.Mutex
	byOwner map[string]*Task
	// cloning counts clones that hold a slot; waiting are the owners that found none, in order.
	cloning, max int
	waiting      []string
}

func newTasks(maxClones int) *tasks {
	return &tasks{byOwner: map[string]*Task{}, max: maxClones}
}

// Task returns what is known of the task of owner, nil when it has none.
func (s *Session) Task(owner string) *Task {
	s.tasks.mu.Lock()
	defer s.tasks.mu.Unlock()
	t, ok := s.tasks.byOwner[owner]
	if !ok {
		return nil
	}
	found := *t
	return &found
}

// ClearTask forgets the ended task of owner, once its outcome has been dealt with.
func (s *Session) ClearTask(owner string) {
	s.tasks.mu.Lock()
	defer s.tasks.mu.Unlock()
	if t := s.tasks.byOwner[owner]; t != nil && t.State != TaskRunning {
		delete(s.tasks.byOwner, owner)
	}
}

// ResumeClone takes up a clone task that was started before this process. It returns nil when vCenter does not know
// the task any more, as some time after its end: then only the inventory tells how it ended.
func (s *Session) ResumeClone(ctx context.Context, owner, ref, what string) (*Task, error) {
	if t := s.Task(owner); t != nil {
		return t, nil
	}
	var task mo.Task
	err := property.DefaultCollector(s.vim()).RetrieveOne(ctx, taskRef(ref), []string{"info.state", "info.error"}, &task)
	if IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", ref, err)
	}
	// A clone that runs already takes its slot whether or not one is free.
	s.tasks.addClone(owner, &Task{Ref: ref, Kind: TaskClone, What: what, State: TaskRunning})
	if !s.taskChanged(owner, task.Info.State, task.Info.Error) {
		s.watch.add(taskRef(ref), owner, "")
	}
	return s.Task(owner), nil
}

// started remembers a task that vCenter accepted and follows it.
func (s *Session) started(owner string, ref types.ManagedObjectReference, kind TaskKind, what string) {
	s.tasks.mu.Lock()
	s.tasks.byOwner[owner] = &Task{Ref: ref.Value, Kind: kind, What: what, State: TaskRunning}
	s.tasks.mu.Unlock()
	s.watch.add(ref, owner, "")
}

// taskChanged takes in news of a task and tells whether it ended.
func (s *Session) taskChanged(owner string, state types.TaskInfoState, failure *types.LocalizedMethodFault) bool {
	s.tasks.mu.Lock()
	defer s.tasks.mu.Unlock()
	t := s.tasks.byOwner[owner]
	if t == nil || t.State != TaskRunning {
		return true
	}
	switch state {
	case types.TaskInfoStateSuccess:
		t.State = TaskSucceeded
	case types.TaskInfoStateError:
		t.State, t.Err = TaskFailed, taskFault(t.What, failure)
		if t.Err == nil {
			t.Err = &TaskError{What: t.What, Err: fmt.Errorf("%s ended in error without a fault", t.Ref)}
		}
	default:
		return false
	}
	if t.Kind == TaskClone {
		s.release()
	}
	return true
}

// taskGone ends a task that left vCenter before its end was seen: whether it succeeded only the inventory tells.
func (s *Session) taskGone(owner string) {
	s.tasks.mu.Lock()
	defer s.tasks.mu.Unlock()
	if t := s.tasks.byOwner[owner]; t != nil && t.State == TaskRunning {
		delete(s.tasks.byOwner, owner)
		if t.Kind == TaskClone {
			s.release()
		}
	}
}

// acquireSlot takes a slot for a clone, or puts owner in the queue.
func (t *tasks) acquireSlot(owner string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting = slices.DeleteFunc(t.waiting, func(other string) bool { return other == owner })
	if t.cloning >= t.max {
		t.waiting = append(t.waiting, owner)
		return false
	}
	t.cloning++
	return true
}

func (t *tasks) addClone(owner string, task *Task) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cloning++
	t.byOwner[owner] = task
}

// queue lists the owners that wait for a slot.
func (t *tasks) queue() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.waiting)
}

// release gives a slot back and tells the first owner that waits for one. The caller holds the lock.
func (s *Session) release() {
	t := s.tasks
	t.cloning--
	if free := t.max - t.cloning; free > 0 && len(t.waiting) > 0 {
		next := t.waiting[:min(free, len(t.waiting))]
		t.waiting = slices.Clone(t.waiting[len(next):])
		for _, owner := range next {
			go s.pool.notify(owner)
		}
	}
}

func (s *Session) giveBackSlot() {
	s.tasks.mu.Lock()
	defer s.tasks.mu.Unlock()
	s.release()
}

// Forget drops everything that is kept for owner: it has no virtual machine any more.
func (s *Session) Forget(owner string) {
	s.watch.removeOwner(owner)
	s.tasks.mu.Lock()
	defer s.tasks.mu.Unlock()
	s.tasks.waiting = slices.DeleteFunc(s.tasks.waiting, func(other string) bool { return other == owner })
	if t := s.tasks.byOwner[owner]; t != nil {
		delete(s.tasks.byOwner, owner)
		if t.Kind == TaskClone && t.State == TaskRunning {
			s.release()
		}
	}
}

// ClonesOf lists clone tasks that are not over on a template. After a crash between asking for a clone and noting its
// task, they are the only trace of a virtual machine that is not yet in the inventory.
func (s *Session) ClonesOf(ctx context.Context, template string) ([]string, error) {
	var vm mo.VirtualMachine
	err := property.DefaultCollector(s.vim()).RetrieveOne(ctx, vmRef(template), []string{"recentTask"}, &vm)
	if IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the tasks of template %s: %w", template, err)
	}
	var out []string
	for _, ref := range vm.RecentTask {
		var task mo.Task
		err := property.DefaultCollector(s.vim()).RetrieveOne(ctx, ref, []string{"info.state", "info.descriptionId"}, &task)
		if IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read %s of template %s: %w", ref, template, err)
		}
		over := task.Info.State == types.TaskInfoStateSuccess || task.Info.State == types.TaskInfoStateError
		if !over && (task.Info.DescriptionId == "VirtualMachine.clone" || task.Info.DescriptionId == "VirtualMachine.cloneVm") {
			out = append(out, ref.Value)
		}
	}
	return out, nil
}

// Await follows a task of somebody, and tells owner when it ends.
func (s *Session) Await(owner, ref string) { s.watch.add(taskRef(ref), owner, "") }

func taskRef(value string) types.ManagedObjectReference {
	return types.ManagedObjectReference{Type: "Task", Value: value}
}

func vmRef(value string) types.ManagedObjectReference {
	return types.ManagedObjectReference{Type: "VirtualMachine", Value: value}
}
