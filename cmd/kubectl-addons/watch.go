package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/apply"
	"github.com/millwright-dev/millwright/internal/cli"
)

// follow shows the add-ons anew whenever an object of theirs changes: until all
// are healthy where that is asked for, else until it is interrupted.
func (o *statusOptions) follow(ctx context.Context, target *target, engine *apply.Engine) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	signals := newSignals(target.client)
	return cli.Wait(ctx, o.timeout, signals.changed, o.NewProgress(), func() (cli.State, error) {
		// Begun before the objects are read: what changes in between is seen.
		signals.watch(ctx, configMaps)
		sets, err := o.sets(ctx, engine)
		if err != nil {
			return cli.State{}, err
		}
		for _, set := range sets {
			for _, member := range set.Members {
				signals.watch(ctx, member.GroupKind())
			}
		}
		return o.state(sets)
	})
}

// state words the sets for both kinds of reader.
func (o *statusOptions) state(sets []*apply.Installed) (cli.State, error) {
	state := cli.State{Done: o.until == untilHealthy && len(sets) > 0}
	var missing []string
	for _, set := range sets {
		line := fmt.Sprintf("%s %s: %s, %d/%d healthy, %d drifted", set.Name, set.Version, set.State, set.Healthy(), len(set.Objects), set.Drifted())
		state.View.Changes = append(state.View.Changes, line)
		if set.State != apply.StateApplied || set.Healthy() < len(set.Objects) {
			state.Done = false
			missing = append(missing, line)
		}
	}
	if len(sets) == 0 {
		missing = append(missing, "no add-on is installed")
	}
	state.Missing = strings.Join(missing, "; ")
	table := func() *metav1.Table { return setsTable(sets) }
	if o.name != "" && len(sets) == 1 {
		table = func() *metav1.Table { return objectsTable(sets[0]) }
	}
	var screen bytes.Buffer
	// A printer of its own: the header belongs on each screen.
	if err := (cli.NewPrintFlags()).Print(&screen, cli.NewScheme(), cli.Result{Table: table}); err != nil {
		return state, err
	}
	state.View.Screen = strings.Split(strings.TrimSuffix(screen.String(), "\n"), "\n")
	return state, nil
}

// sets reads and judges the add-ons that are asked for.
func (o *statusOptions) sets(ctx context.Context, engine *apply.Engine) ([]*apply.Installed, error) {
	records, err := engine.Records(ctx)
	if err != nil {
		return nil, err
	}
	if o.name != "" {
		if records, err = recordsOf(records, []string{o.name}); err != nil {
			return nil, err
		}
	}
	var sets []*apply.Installed
	for _, record := range records {
		installed, err := o.inspect(ctx, engine, record)
		if err != nil {
			return nil, err
		}
		sets = append(sets, installed)
	}
	return sets, nil
}

// configMaps are also the records'.
var configMaps = schema.GroupKind{Kind: "ConfigMap"}

// watchPause is how long to wait before a watch that ended is begun again.
const watchPause = time.Second

// signals tell that something of the add-ons changed, by watching the metadata of
// all objects of each kind that bear a set's label, and the records.
type signals struct {
	client  client.WithWatch
	changed chan struct{}
	kinds   map[schema.GroupKind]bool
}

func newSignals(c client.WithWatch) *signals {
	return &signals{client: c, changed: make(chan struct{}, 1), kinds: map[schema.GroupKind]bool{}}
}

// watch begins to watch a kind, unless it does already.
func (s *signals) watch(ctx context.Context, kind schema.GroupKind) {
	if s.kinds[kind] {
		return
	}
	mapping, err := s.client.RESTMapper().RESTMapping(kind)
	if err != nil {
		// Not served now: asked again with the next change.
		return
	}
	s.kinds[kind] = true
	gvk := mapping.GroupVersionKind
	go s.follow(ctx, gvk, client.HasLabels{apply.MembershipLabel})
	if kind == configMaps {
		go s.follow(ctx, corev1.SchemeGroupVersion.WithKind("ConfigMap"), client.HasLabels{apply.AddonLabel}, client.InNamespace(apply.ParentNamespace))
	}
}

func (s *signals) follow(ctx context.Context, gvk schema.GroupVersionKind, options ...client.ListOption) {
	list := &metav1.PartialObjectMetadataList{}
	gvk.Kind += "List"
	list.SetGroupVersionKind(gvk)
	for ctx.Err() == nil {
		if w, err := s.client.Watch(ctx, list, options...); err == nil {
			for range w.ResultChan() {
				select {
				case s.changed <- struct{}{}:
				default:
				}
			}
			w.Stop()
		}
		select {
		case <-ctx.Done():
		case <-time.After(watchPause):
		}
	}
}
