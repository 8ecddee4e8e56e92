package vcenter

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/view"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"
)

// Properties that the watch reports.
var (
	watchedVM   = []string{"runtime.powerState", "guest.ipAddress", "guest.net"}
	watchedTask = []string{"info.state", "info.error"}
)

// watcher follows tasks and virtual machines in motion with one property collector and one filter, whatever their number:
// the filter selects the members of a list view, which is edited as objects come and go.
//
// A virtual machine at rest is not in the list. The cost of a change grows with its length, in vcsim with its square.
type watcher struct {
	s *Session

	mu      sync.Mutex
	objects map[types.ManagedObjectReference]*watched
	// enter and leave are changes to the list view that have not been sent; poke asks for them to be sent.
	enter, leave []types.ManagedObjectReference
	poke         chan struct{}
	// interrupt ends the collector that runs, nil while none does.
	interrupt atomic.Pointer[context.CancelFunc]
}

type watched struct {
	// owners are told when the object changes. Several may wait for the end of one task.
	owners map[string]bool
	// seen sums up the properties that the owners know.
	seen   string
	values map[string]types.AnyType
}

func newWatcher(s *Session) *watcher {
	return &watcher{s: s, objects: map[types.ManagedObjectReference]*watched{}, poke: make(chan struct{}, 1)}
}

// add watches an object for owner. seen is the digest of what owner knows of it: a change between that knowledge and the
// first report counts as a change.
func (w *watcher) add(ref types.ManagedObjectReference, owner, seen string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.s.ctx.Err() != nil {
		// Owners that came before were told by close. This one got the session just before it was given up.
		go w.s.pool.notify(owner)
	}
	if have, ok := w.objects[ref]; ok {
		have.owners[owner] = true
		return
	}
	w.objects[ref] = &watched{owners: map[string]bool{owner: true}, seen: seen, values: map[string]types.AnyType{}}
	w.leave = without(w.leave, ref)
	w.enter = append(w.enter, ref)
	w.edit()
}

// edit asks for the list view to be edited. Whoever comes while that is being done is served by the next edit, together
// with all others who came.
func (w *watcher) edit() {
	select {
	case w.poke <- struct{}{}:
	default:
	}
}

func without(refs []types.ManagedObjectReference, ref types.ManagedObjectReference) []types.ManagedObjectReference {
	return slices.DeleteFunc(refs, func(other types.ManagedObjectReference) bool { return other == ref })
}

func (w *watcher) removeOwner(owner string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for ref, object := range w.objects {
		delete(object.owners, owner)
		if len(object.owners) == 0 {
			w.drop(ref)
		}
	}
}

func (w *watcher) remove(ref types.ManagedObjectReference, owner string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if object, ok := w.objects[ref]; ok {
		delete(object.owners, owner)
		if len(object.owners) == 0 {
			w.drop(ref)
		}
	}
}

// drop takes an object out. The caller holds the lock.
func (w *watcher) drop(ref types.ManagedObjectReference) {
	delete(w.objects, ref)
	w.enter = without(w.enter, ref)
	w.leave = append(w.leave, ref)
	w.edit()
}

// follow reports changes until ctx ends or the collector fails, as it does when its session ends.
func (w *watcher) follow(ctx context.Context) error {
	c := w.s.vim()
	collector, err := property.DefaultCollector(c).Create(ctx)
	if err != nil {
		return fmt.Errorf("create property collector: %w", err)
	}
	list, err := view.NewManager(c).CreateListView(ctx, nil)
	if err != nil {
		return fmt.Errorf("create list view: %w", err)
	}
	if _, err := collector.CreateFilter(ctx, filterOf(list.Reference())); err != nil {
		return fmt.Errorf("create property filter: %w", err)
	}

	waiting, interrupt := context.WithCancel(context.WithoutCancel(ctx))
	w.interrupt.Store(&interrupt)
	defer w.interrupt.Store(nil)
	// vCenter is asked to let the wait end, so that nothing of it is left there; it may have come too early to hear that.
	stop := context.AfterFunc(ctx, func() {
		bounded, cancel := context.WithTimeout(waiting, farewell)
		defer cancel()
		_ = collector.CancelWaitForUpdates(bounded)
		time.AfterFunc(farewell, interrupt)
	})
	defer stop()
	w.startOver()
	edits := make(chan struct{})
	go func() {
		defer close(edits)
		w.editList(waiting, list, interrupt)
	}()
	// The next collector's list must not find that this one took its changes.
	defer func() {
		interrupt()
		<-edits
	}()

	next := types.WaitForUpdatesEx{This: collector.Reference(), Options: &types.WaitOptions{
		MaxWaitSeconds: types.NewInt32(int32(w.s.pool.opts.watchWait / time.Second)),
	}}
	for err == nil && ctx.Err() == nil {
		err = w.wait(waiting, &next)
	}
	if ctx.Err() != nil && waiting.Err() == nil {
		bounded, cancel := context.WithTimeout(waiting, farewell)
		defer cancel()
		// What is left ends with the session.
		_ = collector.Destroy(bounded)
	}
	return err
}

// farewell bounds the calls by which a session takes its leave.
const farewell = 2 * time.Second

// wait takes in one set of updates, or none when there were none for a while.
func (w *watcher) wait(ctx context.Context, next *types.WaitForUpdatesEx) error {
	res, err := methods.WaitForUpdatesEx(ctx, w.s.vim(), next)
	if err != nil {
		return fmt.Errorf("wait for updates: %w", err)
	}
	if set := res.Returnval; set != nil {
		next.Version = set.Version
		w.handle(set)
	}
	return nil
}

// restart gives up the collector that runs: its session has ended.
func (w *watcher) restart() {
	if interrupt := w.interrupt.Load(); interrupt != nil {
		(*interrupt)()
	}
}

func filterOf(list types.ManagedObjectReference) types.CreateFilter {
	return types.CreateFilter{Spec: types.PropertyFilterSpec{
		ObjectSet: []types.ObjectSpec{{
			Obj: list, Skip: types.NewBool(true),
			SelectSet: []types.BaseSelectionSpec{&types.TraversalSpec{Type: "ListView", Path: "view", Skip: types.NewBool(false)}},
		}},
		PropSet: []types.PropertySpec{
			{Type: "VirtualMachine", PathSet: watchedVM},
			{Type: "Task", PathSet: watchedTask},
		},
		ReportMissingObjectsInResults: types.NewBool(true),
	}}
}

// startOver makes all objects enter the list view, which is new.
func (w *watcher) startOver() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.enter, w.leave = slices.Collect(maps.Keys(w.objects)), nil
	w.edit()
}

// editList edits the list view when asked to, until ctx ends.
func (w *watcher) editList(ctx context.Context, list *view.ListView, interrupt context.CancelFunc) {
	for {
		select {
		case <-w.poke:
		case <-ctx.Done():
			return
		}
		w.mu.Lock()
		enter, leave := w.enter, w.leave
		w.enter, w.leave = nil, nil
		w.mu.Unlock()
		if len(enter)+len(leave) == 0 {
			continue
		}
		res, err := methods.ModifyListView(ctx, w.s.vim(), &types.ModifyListView{This: list.Reference(), Add: enter, Remove: leave})
		if err != nil {
			// The next collector starts with all objects.
			interrupt()
			return
		}
		for _, ref := range res.Returnval {
			w.tell(w.gone(ref))
		}
	}
}

// handle takes in a set of updates and tells the owners of what changed.
func (w *watcher) handle(set *types.UpdateSet) {
	for _, filter := range set.FilterSet {
		for _, update := range filter.ObjectSet {
			w.tell(w.update(update))
		}
		for _, missing := range filter.MissingSet {
			w.tell(w.gone(missing.Obj))
		}
	}
}

func (w *watcher) tell(owners []string) {
	for _, owner := range owners {
		w.s.pool.notify(owner)
	}
}

// owners lists everybody who watches something.
func (w *watcher) owners() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := map[string]bool{}
	for _, object := range w.objects {
		maps.Copy(all, object.owners)
	}
	return slices.Collect(maps.Keys(all))
}

// update returns the owners to tell.
func (w *watcher) update(u types.ObjectUpdate) []string {
	if u.Kind == types.ObjectUpdateKindLeave {
		return w.gone(u.Obj)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	object, ok := w.objects[u.Obj]
	if !ok {
		return nil
	}
	for _, change := range u.ChangeSet {
		object.values[change.Name] = change.Val
	}
	owners := slices.Collect(maps.Keys(object.owners))
	if u.Obj.Type == "Task" {
		state, _ := object.values["info.state"].(types.TaskInfoState)
		if state != types.TaskInfoStateSuccess && state != types.TaskInfoStateError {
			return nil
		}
		for _, owner := range owners {
			if t := w.s.Task(owner); t != nil && t.Ref == u.Obj.Value {
				w.s.taskChanged(owner, state, faultOf(object.values["info.error"]))
			}
		}
		w.drop(u.Obj)
		return owners
	}
	now := seenBy(object.values)
	if now == object.seen {
		return nil
	}
	object.seen = now
	return owners
}

// gone handles an object that left the inventory, or a task that vCenter forgot.
func (w *watcher) gone(ref types.ManagedObjectReference) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	object, ok := w.objects[ref]
	if !ok {
		return nil
	}
	owners := slices.Collect(maps.Keys(object.owners))
	if ref.Type == "Task" {
		for _, owner := range owners {
			if t := w.s.Task(owner); t != nil && t.Ref == ref.Value {
				w.s.taskGone(owner)
			}
		}
	}
	w.drop(ref)
	return owners
}

func faultOf(value types.AnyType) *types.LocalizedMethodFault {
	switch f := value.(type) {
	case types.LocalizedMethodFault:
		return &f
	case *types.LocalizedMethodFault:
		return f
	}
	return nil
}

// seenBy sums up the watched properties of a virtual machine from the values of updates.
func seenBy(values map[string]types.AnyType) string {
	power, _ := values["runtime.powerState"].(types.VirtualMachinePowerState)
	ip, _ := values["guest.ipAddress"].(string)
	nics, _ := values["guest.net"].(types.ArrayOfGuestNicInfo)
	return digest(power, ip, nics.GuestNicInfo)
}

func digest(power types.VirtualMachinePowerState, ip string, nics []types.GuestNicInfo) string {
	parts := []string{string(power), ip}
	for _, nic := range nics {
		parts = append(parts, nic.MacAddress+"="+strings.Join(nic.IpAddress, ","))
	}
	return strings.Join(parts, " ")
}
