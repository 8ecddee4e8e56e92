package workload

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ErrNotConnected says that a workload cluster does not answer, or not yet. It is a state and no failure: callers wait
// for ClusterEvents.
var ErrNotConnected = errors.New("not connected")

// Options of a Pool. The zero value is what the operator uses; tests shorten the times.
type Options struct {
	// DialTimeout bounds the TCP connection; 2 s when zero.
	DialTimeout time.Duration
	// RequestTimeout bounds any request but a watch; 10 s when zero.
	RequestTimeout time.Duration
	// ProbeTimeout bounds one request to /livez; 5 s when zero.
	ProbeTimeout time.Duration
	// ProbeInterval is the time between two requests to /livez of a connected cluster; 10 s when zero.
	ProbeInterval time.Duration
	// UserAgent of every request; "millwright" when empty.
	UserAgent string
}

func (o Options) withDefaults() Options {
	set := func(d *time.Duration, value time.Duration) {
		if *d == 0 {
			*d = value
		}
	}
	set(&o.DialTimeout, 2*time.Second)
	set(&o.RequestTimeout, 10*time.Second)
	set(&o.ProbeTimeout, 5*time.Second)
	set(&o.ProbeInterval, 10*time.Second)
	if o.UserAgent == "" {
		o.UserAgent = "millwright"
	}
	return o
}

// Connection is a live connection to one workload cluster.
type Connection struct {
	// Client reads Nodes from a cache that is kept by a watch, and everything else from the API server.
	Client client.Client
	// Config has a bounded timeout; copy it before changing it.
	Config    *rest.Config
	Clientset kubernetes.Interface
	// Mapper knows the kinds that the cluster serves.
	Mapper meta.RESTMapper
	// Requests and Watches send over the connections that all clients share. Only Requests are bounded in time.
	Requests, Watches *http.Client
}

// Health of a connection.
type Health struct {
	Connected bool
	// Since is when Connected last changed, or when the first attempt began; zero when nobody has asked for the cluster.
	Since time.Time
	// LastProbe is the end of the last attempt, LastSuccess of the last that succeeded; zero when there was none.
	LastProbe, LastSuccess time.Time
	// Err tells why the last attempt failed; nil after one that succeeded.
	Err error
}

// Cause returns the error in words that stay the same while the cause does: without the local port of a failed
// connection, which would make a new message, and a write, of every attempt.
func (h Health) Cause() string {
	var operation *net.OpError
	var timeout net.Error
	var request *url.Error
	switch {
	case h.Err == nil:
		return ""
	case errors.As(h.Err, &operation) && operation.Addr != nil && !operation.Timeout():
		return fmt.Sprintf("%s %s: %s", operation.Op, operation.Addr, innermost(operation.Err))
	case errors.As(h.Err, &timeout) && timeout.Timeout(), errors.Is(h.Err, context.DeadlineExceeded):
		return "no answer in time"
	case errors.As(h.Err, &request):
		return innermost(request.Err).Error()
	}
	return h.Err.Error()
}

func innermost(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}

// Pool holds the connections to all workload clusters. It is a manager.Runnable. A connection ends with Forget, or by
// itself when its Cluster is gone.
type Pool struct {
	mgmt client.Client
	opts Options

	// ctx ends when the Runnable is stopped; connections live no longer.
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu       sync.Mutex
	clusters map[client.ObjectKey]*cluster

	listeners listeners
}

// NewPool returns a Pool that reads kubeconfig Secrets with mgmt, a cached client of the management cluster.
func NewPool(mgmt client.Client, opts Options) *Pool {
	ctx, cancel := context.WithCancel(context.Background())
	return &Pool{mgmt: mgmt, opts: opts.withDefaults(), ctx: ctx, cancel: cancel, clusters: map[client.ObjectKey]*cluster{}}
}

// Start keeps the connections until ctx ends, and returns when all of them are closed.
func (p *Pool) Start(ctx context.Context) error {
	<-ctx.Done()
	p.cancel()
	p.wg.Wait()
	return nil
}

// Get returns the connection to a cluster without waiting for it. The first call starts to connect. While the cluster
// does not answer, the error is ErrNotConnected (errors.Is) with the cause in its text.
func (p *Pool) Get(_ context.Context, key client.ObjectKey) (*Connection, error) {
	c := p.ensure(key)
	connection, health := c.snapshot()
	if connection == nil {
		if health.Err == nil {
			return nil, fmt.Errorf("cluster %q: %w", key, ErrNotConnected)
		}
		return nil, fmt.Errorf("cluster %q: %w: %w", key, ErrNotConnected, health.Err)
	}
	return connection, nil
}

// Health returns the health of the connection to a cluster; the zero value when nobody has asked for the cluster.
func (p *Pool) Health(key client.ObjectKey) Health {
	p.mu.Lock()
	c := p.clusters[key]
	p.mu.Unlock()
	if c == nil {
		return Health{}
	}
	_, health := c.snapshot()
	return health
}

// Forget closes the connection to a cluster and stops its watch. A later Get connects anew.
func (p *Pool) Forget(key client.ObjectKey) {
	p.mu.Lock()
	c := p.clusters[key]
	delete(p.clusters, key)
	p.mu.Unlock()
	if c != nil {
		c.cancel()
	}
}

// drop forgets a cluster that has ended by itself.
func (p *Pool) drop(c *cluster) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.clusters[c.key] == c {
		delete(p.clusters, c.key)
	}
	c.cancel()
}

// ensure returns the cluster of a key, and starts its goroutine the first time.
func (p *Pool) ensure(key client.ObjectKey) *cluster {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.clusters[key]; c != nil {
		return c
	}
	ctx, cancel := context.WithCancel(p.ctx)
	c := &cluster{key: key, pool: p, cancel: cancel, check: make(chan struct{}, 1)}
	c.health.Since = time.Now()
	p.clusters[key] = c
	p.wg.Go(func() { c.run(ctx) })
	return c
}

// nodeChanged is called by the watch of a cluster.
func (p *Pool) nodeChanged(key client.ObjectKey, node *corev1.Node) {
	p.listeners.node(p.ctx, key, node)
}
