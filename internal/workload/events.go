package workload

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// ClusterMapFunc names what to reconcile when the connection to a cluster came up or was lost.
type ClusterMapFunc func(ctx context.Context, cluster client.ObjectKey) []reconcile.Request

// NodeMapFunc names what to reconcile when a Node of a cluster was added, changed or deleted. The Node belongs to a
// cache: do not change it.
type NodeMapFunc func(ctx context.Context, cluster client.ObjectKey, node *corev1.Node) []reconcile.Request

// ClusterEvents is a source that reconciles the Cluster when the connection to it came up or was lost.
func (p *Pool) ClusterEvents() source.Source {
	return p.ClusterEventsTo(func(_ context.Context, cluster client.ObjectKey) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: cluster}}
	})
}

// ClusterEventsTo is ClusterEvents for objects that belong to the Cluster.
func (p *Pool) ClusterEventsTo(mapFn ClusterMapFunc) source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		p.listeners.add(ctx, &listener{onCluster: func(ctx context.Context, cluster client.ObjectKey) {
			for _, request := range mapFn(ctx, cluster) {
				queue.Add(request)
			}
		}})
		return nil
	})
}

// NodeEvents is a source that reconciles what mapFn names when a Node of any connected cluster changed.
func (p *Pool) NodeEvents(mapFn NodeMapFunc) source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		p.listeners.add(ctx, &listener{onNode: func(ctx context.Context, cluster client.ObjectKey, node *corev1.Node) {
			for _, request := range mapFn(ctx, cluster, node) {
				queue.Add(request)
			}
		}})
		return nil
	})
}

// listener is one started source.
type listener struct {
	onCluster func(context.Context, client.ObjectKey)
	onNode    func(context.Context, client.ObjectKey, *corev1.Node)
}

// listeners are the started sources.
type listeners struct {
	mu  sync.RWMutex
	all map[*listener]struct{}
}

// add keeps l until ctx ends.
func (ls *listeners) add(ctx context.Context, l *listener) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.all == nil {
		ls.all = map[*listener]struct{}{}
	}
	ls.all[l] = struct{}{}
	context.AfterFunc(ctx, func() {
		ls.mu.Lock()
		defer ls.mu.Unlock()
		delete(ls.all, l)
	})
}

func (ls *listeners) cluster(ctx context.Context, key client.ObjectKey) {
	ls.mu.RLock()
	defer ls.mu.RUnlock()
	for l := range ls.all {
		if l.onCluster != nil {
			l.onCluster(ctx, key)
		}
	}
}

func (ls *listeners) node(ctx context.Context, key client.ObjectKey, node *corev1.Node) {
	ls.mu.RLock()
	defer ls.mu.RUnlock()
	for l := range ls.all {
		if l.onNode != nil {
			l.onNode(ctx, key, node)
		}
	}
}
