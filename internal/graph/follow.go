package graph

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Pauses between tries to list or watch while the server does not answer.
const (
	firstRetry = 200 * time.Millisecond
	lastRetry  = 2 * time.Second
)

// Source is a list of objects to read or to follow.
type Source struct {
	// List is an empty list of the wanted type.
	List    client.ObjectList
	Options []client.ListOption
	// Optional lists are those that a server or a user's permissions may lack;
	// the graph is then drawn without them.
	Optional bool
}

// Follower keeps the objects of some sources up to date by watches, for commands
// that wait or show a live view.
type Follower struct {
	client  client.WithWatch
	changed chan struct{}

	mu      sync.Mutex
	streams map[string]*stream
	err     error
}

// NewFollower returns a follower of nothing yet.
func NewFollower(c client.WithWatch) *Follower {
	return &Follower{client: c, changed: make(chan struct{}, 1), streams: map[string]*stream{}}
}

// Follow lists each source, and watches it until ctx ends. A source whose list
// type is followed already is left alone, so that a caller may name all it needs
// again and again.
func (f *Follower) Follow(ctx context.Context, sources ...Source) error {
	for _, source := range sources {
		gvk, err := f.client.GroupVersionKindFor(source.List)
		if err != nil {
			return fmt.Errorf("follow %T: %w", source.List, err)
		}
		f.mu.Lock()
		_, known := f.streams[gvk.String()]
		s := &stream{follower: f, source: source}
		if !known {
			f.streams[gvk.String()] = s
		}
		f.mu.Unlock()
		if known {
			continue
		}
		switch err := s.list(ctx); {
		case err != nil && source.Optional && unavailable(err):
		case err != nil:
			return err
		default:
			go s.run(ctx)
		}
	}
	return nil
}

// Changed fires after one or several changes.
func (f *Follower) Changed() <-chan struct{} { return f.changed }

// Objects returns what is there now. An error is one that trying again does not
// heal, such as a permission that was taken away.
func (f *Follower) Objects() ([]client.Object, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return nil, f.err
	}
	var objects []client.Object
	for _, s := range f.streams {
		for _, obj := range s.held {
			objects = append(objects, obj)
		}
	}
	return objects, nil
}

// update changes what is held under the lock, and tells that it did.
func (f *Follower) update(change func()) {
	f.mu.Lock()
	change()
	f.mu.Unlock()
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// stream is the list and watch of one source.
type stream struct {
	follower *Follower
	source   Source
	version  string
	held     map[client.ObjectKey]client.Object
	lost     *Loss
	// unreached is when the server last did not answer at all.
	unreached time.Time
}

// list reads the source anew and forgets what it held.
func (s *stream) list(ctx context.Context) error {
	held := map[client.ObjectKey]client.Object{}
	version := ""
	err := Pages(ctx, s.follower.client, s.source.List, func(page client.ObjectList) error {
		version = page.GetResourceVersion()
		return meta.EachListItem(page, func(item runtime.Object) error {
			obj := item.(client.Object)
			held[client.ObjectKeyFromObject(obj)] = obj
			return nil
		})
	}, s.source.Options...)
	if err != nil {
		return err
	}
	s.version = version
	s.follower.update(func() { s.held = held })
	return nil
}

// run watches from the last version seen. It lists again when the server no
// longer has that version, and tries again when the server does not answer.
func (s *stream) run(ctx context.Context) {
	pause := firstRetry
	for ctx.Err() == nil {
		var err error
		if s.version == "" {
			err = s.list(ctx)
		}
		if err == nil {
			err = s.watch(ctx)
		}
		switch {
		case err == nil:
			pause = firstRetry
			continue
		case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
			s.version = ""
		case s.believes(err) && unavailable(err) && s.source.Optional:
			s.follower.update(func() { s.held, s.lost = nil, nil })
			return
		case s.believes(err):
			s.follower.update(func() { s.follower.err = err })
			return
		case !errors.Is(err, errWatchEnded) && ctx.Err() == nil:
			s.lose(err)
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
		case <-timer.C:
		}
		pause = min(2*pause, lastRetry)
	}
}

// watch follows changes until the server ends the watch, as it does every few
// minutes, which is no error.
func (s *stream) watch(ctx context.Context) error {
	options := append([]client.ListOption{&client.ListOptions{Raw: &metav1.ListOptions{
		ResourceVersion: s.version, AllowWatchBookmarks: true,
	}}}, s.source.Options...)
	watcher, err := s.follower.client.Watch(ctx, s.source.List.DeepCopyObject().(client.ObjectList), options...)
	if err != nil {
		return fmt.Errorf("watch %s: %w", kindOfList(s.follower.client, s.source.List), err)
	}
	defer watcher.Stop()
	s.answered()
	events := 0
	for event := range watcher.ResultChan() {
		events++
		if event.Type == watch.Error {
			return apierrors.FromObject(event.Object)
		}
		obj, ok := event.Object.(client.Object)
		if !ok {
			continue
		}
		s.version = obj.GetResourceVersion()
		key := client.ObjectKeyFromObject(obj)
		switch event.Type {
		case watch.Added, watch.Modified:
			s.follower.update(func() { s.held[key] = obj })
		case watch.Deleted:
			s.follower.update(func() { delete(s.held, key) })
		}
	}
	if events == 0 {
		return errWatchEnded
	}
	return nil
}

// errWatchEnded makes the next watch wait a moment: a server that ends every
// watch at once must not be asked in a loop.
var errWatchEnded = errors.New("the server ended the watch without an event")

// unavailable tells that the server does not serve a kind, or not to this user.
func unavailable(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || meta.IsNoMatchError(err)
}
