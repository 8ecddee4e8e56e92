package workload

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/millwright-dev/millwright/internal/kubeconfig"
)

// Indexes of the cached Nodes, for client.MatchingFields.
const (
	// IndexProviderID finds Nodes by spec.providerID.
	IndexProviderID = "spec.providerID"
	// IndexSystemUUID finds Nodes by status.nodeInfo.systemUUID in lower case.
	IndexSystemUUID = "status.nodeInfo.systemUUID"
)

// nodeSyncTimeout bounds the first list of Nodes after a probe that succeeded.
const nodeSyncTimeout = 30 * time.Second

// session is what belongs to one kubeconfig: transport, clients, cache. It is used once and closed.
type session struct {
	kubeconfig []byte
	connection *Connection
	probeURL   string
	requests   *http.Client
	watches    *http.Client
	timeout    time.Duration

	stop context.CancelFunc
	done sync.WaitGroup
}

// newSession makes the clients of a kubeconfig; it makes no request.
func newSession(data []byte, opts Options) (*session, error) {
	config, err := kubeconfig.RESTConfig(data)
	if err != nil {
		return nil, err
	}
	config.UserAgent = opts.UserAgent
	config.QPS, config.Burst = -1, 0 // the API server's own priority and fairness governs, and the callers are few
	config.WarningHandler = rest.NoWarnings{}
	dialer := &net.Dialer{Timeout: opts.DialTimeout, KeepAlive: 15 * time.Second}
	config.Dial = dialer.DialContext

	// One transport, two clients: the timeout of an http.Client would end watches too.
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	config.Timeout = opts.RequestTimeout
	s := &session{
		kubeconfig: data,
		requests:   &http.Client{Transport: transport, Timeout: opts.RequestTimeout},
		watches:    &http.Client{Transport: transport},
		timeout:    opts.ProbeTimeout,
		stop:       func() {},
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: server: %w", err)
	}
	s.probeURL = base.JoinPath("/livez").String()
	clientset, err := kubernetes.NewForConfigAndClient(config, s.requests)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	s.connection = &Connection{Config: config, Clientset: clientset, Requests: s.requests, Watches: s.watches}
	return s, nil
}

// probe asks /livez once.
func (s *session) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.probeURL, nil)
	if err != nil {
		return err
	}
	response, err := s.requests.Do(request)
	if err != nil {
		return fmt.Errorf("probe the API server: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	switch response.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("the API server at %s refuses the kubeconfig's credentials: %s", s.probeURL, response.Status)
	default:
		return fmt.Errorf("the API server at %s is not healthy: %s", s.probeURL, response.Status)
	}
}

// watchNodes starts the cache of Nodes, waits until it is filled, and completes the connection. onNode is called for
// each Node added, changed or deleted; onError when the watch fails.
func (s *session) watchNodes(ctx context.Context, onNode func(*corev1.Node), onError func()) error {
	// Not a child of a caller's timeout: the cache lives until close.
	cacheCtx, stop := context.WithCancel(ctx)
	s.stop = stop

	config := rest.CopyConfig(s.connection.Config)
	config.Timeout = 0
	mapper, err := apiutil.NewDynamicRESTMapper(config, s.requests)
	if err != nil {
		return fmt.Errorf("discover the API: %w", err)
	}
	nodes, err := cache.New(config, cache.Options{
		HTTPClient:                  s.watches,
		Scheme:                      clientgoscheme.Scheme,
		Mapper:                      mapper,
		DefaultTransform:            cache.TransformStripManagedFields(),
		ReaderFailOnMissingInformer: true,
		DefaultWatchErrorHandler: func(ctx context.Context, r *toolscache.Reflector, err error) {
			onError()
			toolscache.DefaultWatchErrorHandler(ctx, r, err)
		},
	})
	if err != nil {
		return fmt.Errorf("create the cache of Nodes: %w", err)
	}
	if err := IndexNodes(cacheCtx, nodes); err != nil {
		return err
	}
	informer, err := nodes.GetInformer(cacheCtx, &corev1.Node{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch Nodes: %w", err)
	}
	if _, err := informer.AddEventHandler(nodeHandler(onNode)); err != nil {
		return fmt.Errorf("watch Nodes: %w", err)
	}
	s.done.Go(func() { _ = nodes.Start(cacheCtx) })

	syncCtx, cancel := context.WithTimeout(cacheCtx, nodeSyncTimeout)
	defer cancel()
	if !nodes.WaitForCacheSync(syncCtx) {
		return errors.New("the API server answers, but a list of its Nodes does not come")
	}
	direct, err := client.New(config, client.Options{HTTPClient: s.requests, Scheme: clientgoscheme.Scheme, Mapper: mapper})
	if err != nil {
		return fmt.Errorf("create a client: %w", err)
	}
	s.connection.Client, s.connection.Mapper = nodeCachingClient{Client: direct, nodes: nodes}, mapper
	return nil
}

// IndexNodes adds the indexes by which Nodes are found to a cache of Nodes.
func IndexNodes(ctx context.Context, indexer client.FieldIndexer) error {
	for name, value := range map[string]func(*corev1.Node) string{
		IndexProviderID: func(node *corev1.Node) string { return node.Spec.ProviderID },
		IndexSystemUUID: func(node *corev1.Node) string { return strings.ToLower(node.Status.NodeInfo.SystemUUID) },
	} {
		if err := indexer.IndexField(ctx, &corev1.Node{}, name, func(obj client.Object) []string {
			return []string{value(obj.(*corev1.Node))}
		}); err != nil {
			return fmt.Errorf("index Nodes by %s: %w", name, err)
		}
	}
	return nil
}

// close stops the cache and drops idle connections.
func (s *session) close() {
	s.stop()
	s.done.Wait()
	s.closeIdle()
}

func (s *session) closeIdle() {
	utilnet.CloseIdleConnectionsFor(s.requests.Transport)
}

// nodeHandler drops updates that change nothing but heartbeats and the like.
func nodeHandler(onNode func(*corev1.Node)) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if node, ok := obj.(*corev1.Node); ok {
				onNode(node)
			}
		},
		UpdateFunc: func(before, after any) {
			old, ok1 := before.(*corev1.Node)
			node, ok2 := after.(*corev1.Node)
			if ok1 && ok2 && differ(old, node) {
				onNode(node)
			}
		},
		DeleteFunc: func(obj any) {
			if tombstone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
				obj = tombstone.Obj
			}
			if node, ok := obj.(*corev1.Node); ok {
				onNode(node)
			}
		},
	}
}

// differ compares two states of a Node without the fields that a kubelet writes only to say that it lives.
func differ(a, b *corev1.Node) bool {
	return !reflect.DeepEqual(withoutHeartbeat(a), withoutHeartbeat(b))
}

func withoutHeartbeat(node *corev1.Node) *corev1.Node {
	out := node.DeepCopy()
	out.ResourceVersion = ""
	out.Status.Images = nil
	for i := range out.Status.Conditions {
		out.Status.Conditions[i].LastHeartbeatTime = metav1.Time{}
	}
	return out
}

// nodeCachingClient reads Nodes from the cache.
type nodeCachingClient struct {
	client.Client
	nodes client.Reader
}

func (c nodeCachingClient) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if _, ok := obj.(*corev1.Node); ok {
		return c.nodes.Get(ctx, key, obj, opts...)
	}
	return c.Client.Get(ctx, key, obj, opts...)
}

func (c nodeCachingClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if _, ok := list.(*corev1.NodeList); ok {
		return c.nodes.List(ctx, list, opts...)
	}
	return c.Client.List(ctx, list, opts...)
}
