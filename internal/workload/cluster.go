package workload

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/millwright-dev/millwright/internal/kubeconfig"
)

const (
	// Waits between attempts: the second of each pair is the limit of a doubling backoff.
	firstContactWait, firstContactMaxWait = 100 * time.Millisecond, time.Second
	lostWait, lostMaxWait                 = time.Second, 10 * time.Second

	// lostAfter is how many probes in a row fail before a connected cluster counts as lost: a restarting API server or a
	// dropped packet is no loss, and conditions must not flap.
	lostAfter = 3
	// doubtWait is the time between these probes.
	doubtWait = time.Second
)

// cluster is the connection to one cluster through its ups and downs.
type cluster struct {
	key    client.ObjectKey
	pool   *Pool
	cancel context.CancelFunc
	// check asks for a probe now: a watch has failed.
	check chan struct{}
	// pending is tried again and again until it answers; only run uses it.
	pending *session

	mu         sync.Mutex
	connection *Connection
	health     Health
}

func (c *cluster) snapshot() (*Connection, Health) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.connection, c.health
}

// run connects, keeps the connection while it answers, and starts over, until ctx ends.
func (c *cluster) run(ctx context.Context) {
	logger := log.FromContext(ctx).WithName("workload").WithValues("cluster", c.key)
	wait := newBackoff(firstContactWait, firstContactMaxWait)
	defer c.dropPending()
	for ctx.Err() == nil {
		session, err := c.connect(ctx)
		if err != nil {
			if c.clusterGone(ctx) {
				// Whoever asked was late; nobody will say Forget again.
				c.pool.drop(c)
				return
			}
			c.record(err)
			sleep(ctx, wait.next())
			continue
		}
		c.up(session.connection)
		logger.Info("Connected")
		err = c.keep(ctx, session)
		session.close()
		c.down(err)
		if err != nil {
			logger.Info("Lost", "cause", err.Error())
			wait = newBackoff(lostWait, lostMaxWait)
		} else {
			// The kubeconfig changed: the new one is tried like that of a new cluster.
			wait = newBackoff(firstContactWait, firstContactMaxWait)
		}
	}
}

// connect reads the kubeconfig, probes the API server and fills the cache of Nodes.
func (c *cluster) connect(ctx context.Context) (*session, error) {
	data, err := c.kubeconfig(ctx)
	if err != nil {
		return nil, err
	}
	if c.pending == nil || !bytes.Equal(c.pending.kubeconfig, data) {
		c.dropPending()
		if c.pending, err = newSession(data, c.pool.opts); err != nil {
			return nil, fmt.Errorf("Secret %q: %w", c.secretKey(), err)
		}
	}
	if err := c.pending.probe(ctx); err != nil {
		// A connection on which an answer did not come may be dead without knowing it.
		c.pending.closeIdle()
		return nil, err
	}
	if err := c.pending.watchNodes(ctx, c.nodeEvent, c.requestCheck); err != nil {
		c.dropPending()
		return nil, err
	}
	s := c.pending
	c.pending = nil
	return s, nil
}

func (c *cluster) dropPending() {
	if c.pending != nil {
		c.pending.close()
		c.pending = nil
	}
}

// keep returns nil when the kubeconfig changed or ctx ended, and the cause when the cluster stopped answering.
func (c *cluster) keep(ctx context.Context, s *session) error {
	failures := 0
	for {
		if failures > 0 {
			sleep(ctx, min(c.pool.opts.ProbeInterval, doubtWait))
		} else {
			timer := time.NewTimer(c.pool.opts.ProbeInterval)
			select {
			case <-ctx.Done():
			case <-c.check:
			case <-timer.C:
			}
			timer.Stop()
		}

		// The Secret comes from the cache. One that is gone or broken leaves a working connection alone.
		if current, err := c.kubeconfig(ctx); err == nil && !bytes.Equal(current, s.kubeconfig) {
			return nil
		}
		err := s.probe(ctx)
		if ctx.Err() != nil {
			return nil
		}
		c.record(err)
		if err == nil {
			failures = 0
			continue
		}
		if failures++; failures == lostAfter {
			return err
		}
	}
}

func (c *cluster) secretKey() client.ObjectKey {
	return client.ObjectKey{Namespace: c.key.Namespace, Name: kubeconfig.SecretName(c.key.Name)}
}

func (c *cluster) kubeconfig(ctx context.Context) ([]byte, error) {
	secret := &corev1.Secret{}
	switch err := c.pool.mgmt.Get(ctx, c.secretKey(), secret); {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("no kubeconfig Secret %q with the label %s", c.secretKey(), clusterv1.ClusterNameLabel)
	case err != nil:
		return nil, fmt.Errorf("get kubeconfig Secret %q: %w", c.secretKey(), err)
	}
	if len(secret.Data[kubeconfig.Key]) == 0 {
		return nil, fmt.Errorf("kubeconfig Secret %q has no key %q: put the kubeconfig there", c.secretKey(), kubeconfig.Key)
	}
	return secret.Data[kubeconfig.Key], nil
}

// clusterGone tells whether there is no Cluster any more, and so nothing to connect to.
func (c *cluster) clusterGone(ctx context.Context) bool {
	return apierrors.IsNotFound(c.pool.mgmt.Get(ctx, c.key, &clusterv1.Cluster{}))
}

func (c *cluster) nodeEvent(node *corev1.Node) {
	c.pool.nodeChanged(c.key, node)
}

func (c *cluster) requestCheck() {
	select {
	case c.check <- struct{}{}:
	default:
	}
}

// record notes the end of an attempt.
func (c *cluster) record(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.health.LastProbe = time.Now()
	c.health.Err = err
	if err == nil {
		c.health.LastSuccess = c.health.LastProbe
	}
}

func (c *cluster) up(connection *Connection) {
	c.record(nil)
	c.mu.Lock()
	c.connection = connection
	c.health.Connected, c.health.Since = true, c.health.LastSuccess
	c.mu.Unlock()
	c.pool.listeners.cluster(c.pool.ctx, c.key)
}

func (c *cluster) down(err error) {
	c.mu.Lock()
	c.connection = nil
	c.health.Connected, c.health.Since, c.health.Err = false, time.Now(), err
	c.mu.Unlock()
	c.pool.listeners.cluster(c.pool.ctx, c.key)
}

// backoff doubles from a first wait up to a limit.
type backoff struct{ wait, limit time.Duration }

func newBackoff(first, limit time.Duration) *backoff {
	return &backoff{wait: first, limit: limit}
}

func (b *backoff) next() time.Duration {
	wait := b.wait
	b.wait = min(2*b.wait, b.limit)
	return wait
}

// sleep waits for d or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
