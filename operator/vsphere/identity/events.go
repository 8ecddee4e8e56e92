package identity

import (
	"context"
	"strings"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Key is the name under which sessions know an object, be it as a user or as an owner.
func Key(obj client.Object) string { return obj.GetNamespace() + "/" + obj.GetName() }

// Events reconciles the objects whose keys a pool of sessions calls back with.
func Events(subscribe func(callback func(key string))) source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		subscribe(func(key string) {
			namespace, name, _ := strings.Cut(key, "/")
			queue.Add(reconcile.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: name}})
		})
		return nil
	})
}
