package watches

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/millwright-dev/millwright/internal/contract"
)

// Watcher adds watches of kinds that references name to a controller that runs already, each kind once.
type Watcher struct {
	controller controller.Controller
	cache      cache.Cache
	scheme     *runtime.Scheme

	mu   sync.Mutex
	seen map[schema.GroupVersionKind]bool
}

// New returns a Watcher for one controller; its objects come from the manager's cache.
func New(c controller.Controller, mgr manager.Manager) *Watcher {
	return &Watcher{controller: c, cache: mgr.GetCache(), scheme: mgr.GetScheme(), seen: map[schema.GroupVersionKind]bool{}}
}

// Watch makes the controller handle events of objects of a kind, all of them unstructured. A second call for the same
// kind does nothing.
func (w *Watcher) Watch(gvk schema.GroupVersionKind, h handler.EventHandler, predicates ...predicate.Predicate) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen[gvk] {
		return nil
	}
	obj := contract.Typed(w.scheme, gvk)
	if obj == nil {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(gvk)
		obj = u
	} else {
		h, predicates = untyped(gvk, h, predicate.And(predicates...)), nil
	}
	if err := w.controller.Watch(source.Kind(w.cache, obj, h, predicates...)); err != nil {
		return fmt.Errorf("watch %s: %w", gvk, err)
	}
	w.seen[gvk] = true
	return nil
}

// untyped hands events of typed objects on as of unstructured ones.
func untyped(gvk schema.GroupVersionKind, h handler.EventHandler, p predicate.Predicate) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	// An object that does not convert is logged and left out: there is nobody to return an error to.
	convert := func(ctx context.Context, obj *client.Object) bool {
		u, err := contract.Untyped(*obj, gvk)
		if err != nil {
			log.FromContext(ctx).Error(err, "Hand an event on")
			return false
		}
		*obj = u
		return true
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			if convert(ctx, &e.Object) && p.Create(e) {
				h.Create(ctx, e, q)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if convert(ctx, &e.ObjectOld) && convert(ctx, &e.ObjectNew) && p.Update(e) {
				h.Update(ctx, e, q)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			if convert(ctx, &e.Object) && p.Delete(e) {
				h.Delete(ctx, e, q)
			}
		},
	}
}
