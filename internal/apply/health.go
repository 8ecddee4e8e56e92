package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Health is how an object is doing, by kstatus.
type Health struct {
	ID ID
	// Status is Current when all is well; else InProgress, Failed, Terminating, NotFound or Unknown.
	Status  status.Status
	Message string
}

// Healthy tells whether the object is as it should be.
func (h Health) Healthy() bool { return h.Status == status.CurrentStatus }

// healthOf judges a live object.
func healthOf(id ID, live *unstructured.Unstructured) Health {
	if live == nil {
		return Health{ID: id, Status: status.NotFoundStatus, Message: "it does not exist"}
	}
	result, err := status.Compute(live)
	if err != nil {
		return Health{ID: id, Status: status.UnknownStatus, Message: err.Error()}
	}
	return Health{ID: id, Status: result.Status, Message: result.Message}
}

// healthOf judges a live object by its status and by the add-on's own rules.
func (e *Engine) healthOf(id ID, live *unstructured.Unstructured) Health {
	health := healthOf(id, live)
	if e.Check == nil || !health.Healthy() {
		return health
	}
	if ok, why := e.Check(id, live); !ok {
		health.Status, health.Message = status.InProgressStatus, why
	}
	return health
}

// NotHealthyError says what was not healthy when the time was over.
type NotHealthyError struct {
	Set     string
	After   time.Duration
	Objects []Health
	// NotPruned is how many objects stay because of that.
	NotPruned int
	cause     error
}

func (e *NotHealthyError) Error() string {
	var b strings.Builder
	if e.Set != "" {
		fmt.Fprintf(&b, "add-on %s is applied, but not healthy", e.Set)
	} else {
		b.WriteString("not ready")
	}
	if e.After > 0 {
		fmt.Fprintf(&b, " after %s", e.After)
	}
	for _, health := range e.Objects {
		fmt.Fprintf(&b, "\n%s: %s: %s", health.ID.Full(), health.Status, health.Message)
	}
	if e.NotPruned > 0 {
		fmt.Fprintf(&b, "\n%d objects of the version before are not pruned: install again once it is healthy", e.NotPruned)
	}
	return b.String()
}

// Unwrap returns why the wait ended: context.DeadlineExceeded or context.Canceled.
func (e *NotHealthyError) Unwrap() error { return e.cause }

// waitCurrent watches the objects that are not Current until all are. When the
// context ends first it returns a *NotHealthyError. changed is told of each change.
func (e *Engine) waitCurrent(ctx context.Context, objects []*unstructured.Unstructured, changed func([]Health)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	board := &healthBoard{pending: map[ID]Health{}, changed: changed}
	var pending []*unstructured.Unstructured
	for _, object := range objects {
		if health := e.healthOf(IDOf(object), object); !health.Healthy() {
			board.pending[health.ID] = health
			pending = append(pending, object)
		}
	}
	board.tell()
	done := make(chan error, len(pending))
	for _, object := range pending {
		go func() { done <- e.watchUntilCurrent(ctx, object, board) }()
	}
	var first error
	for range pending {
		if err := <-done; err != nil && first == nil {
			first = err
			cancel()
		}
	}
	if first != nil && ctx.Err() != nil && len(board.pending) > 0 {
		return &NotHealthyError{Objects: board.list(), cause: first}
	}
	return first
}

// Pauses before a watch that ended is begun again: the second is the limit of a doubling backoff.
const firstWatchPause, maxWatchPause = 200 * time.Millisecond, 10 * time.Second

// watchUntilCurrent follows one object. A watch that the server closes is begun again, after a pause that grows while
// watches end at once.
func (e *Engine) watchUntilCurrent(ctx context.Context, object *unstructured.Unstructured, board *healthBoard) error {
	id := IDOf(object)
	list := &unstructured.UnstructuredList{}
	gvk := object.GroupVersionKind()
	gvk.Kind += "List"
	list.SetGroupVersionKind(gvk)
	pause := firstWatchPause
	for {
		began := time.Now()
		// Without a resourceVersion the watch begins with the object as it is.
		w, err := e.Client.Watch(ctx, list, client.InNamespace(id.Namespace),
			client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", id.Name)})
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("watch %s: %w", id.Full(), err)
		}
		current := follow(w, board, func(live *unstructured.Unstructured) Health { return e.healthOf(id, live) })
		w.Stop()
		if current {
			return nil
		}
		if time.Since(began) > maxWatchPause {
			pause = firstWatchPause
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
		pause = min(2*pause, maxWatchPause)
	}
}

// follow reads a watch until the object is Current (true) or the watch ends (false).
func follow(w watch.Interface, board *healthBoard, judge func(*unstructured.Unstructured) Health) bool {
	for event := range w.ResultChan() {
		live, ok := event.Object.(*unstructured.Unstructured)
		if !ok {
			return false
		}
		if event.Type == watch.Deleted {
			live = nil
		}
		if board.note(judge(live)) {
			return true
		}
	}
	return false
}

// healthBoard is what is not healthy yet.
type healthBoard struct {
	mutex   sync.Mutex
	pending map[ID]Health
	changed func([]Health)
}

// note takes a judgement and tells whether the object is done.
func (b *healthBoard) note(health Health) bool {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if health.Healthy() {
		delete(b.pending, health.ID)
	} else if b.pending[health.ID] == health {
		return false
	} else {
		b.pending[health.ID] = health
	}
	b.tell()
	return health.Healthy()
}

func (b *healthBoard) tell() {
	if b.changed != nil {
		b.changed(b.list())
	}
}

func (b *healthBoard) list() []Health {
	list := make([]Health, 0, len(b.pending))
	for _, health := range b.pending {
		list = append(list, health)
	}
	slices.SortFunc(list, func(a, b Health) int { return compareIDs(a.ID, b.ID) })
	return list
}
