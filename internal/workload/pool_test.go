package workload_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/workqueue"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/millwright-dev/millwright/internal/workload"
)

// deadline bounds every wait of these tests.
const deadline = 30 * time.Second

// fixture is a Pool and the management cluster that it reads kubeconfigs from.
type fixture struct {
	t    *testing.T
	mgmt client.Client
	pool *workload.Pool
	// clusters and nodes get what the sources enqueue.
	clusters, nodes chan string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t, mgmt: newManagement(t), clusters: make(chan string, 100), nodes: make(chan string, 100)}
	f.pool = workload.NewPool(f.mgmt, workload.Options{ProbeInterval: 200 * time.Millisecond, ProbeTimeout: time.Second, RequestTimeout: time.Second})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = f.pool.Start(ctx)
	}()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	for _, err := range []error{
		f.pool.ClusterEventsTo(func(_ context.Context, cluster client.ObjectKey) []reconcile.Request {
			f.clusters <- cluster.Name
			return nil
		}).Start(ctx, queue),
		f.pool.NodeEvents(func(_ context.Context, cluster client.ObjectKey, node *corev1.Node) []reconcile.Request {
			f.nodes <- cluster.Name + "/" + node.Name
			return nil
		}).Start(ctx, queue),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		cancel()
		<-done
		queue.ShutDown()
	})
	return f
}

func key(name string) client.ObjectKey { return client.ObjectKey{Namespace: "ns", Name: name} }

// newManagement returns a management cluster with the Clusters of these tests.
func newManagement(t *testing.T) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, clusterv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	builder := fake.NewClientBuilder().WithScheme(scheme)
	for _, name := range []string{"c", "live", "dead"} {
		builder.WithObjects(&clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}})
	}
	return builder.Build()
}

// kubeconfig stores the kubeconfig of a cluster.
func (f *fixture) kubeconfig(cluster string, data []byte) {
	f.t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: cluster + "-kubeconfig"}, Data: map[string][]byte{"value": data}}
	err := f.mgmt.Create(context.Background(), secret)
	if err != nil {
		err = f.mgmt.Update(context.Background(), secret)
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// eventually waits until what is so.
func (f *fixture) eventually(what string, is func() bool) {
	f.t.Helper()
	for end := time.Now().Add(deadline); !is(); {
		if time.Now().After(end) {
			f.t.Fatalf("not within %s: %s", deadline, what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (f *fixture) connected(cluster string) func() bool {
	return func() bool {
		_, err := f.pool.Get(context.Background(), key(cluster))
		return err == nil
	}
}

func (f *fixture) receive(what string, from chan string, want string) {
	f.t.Helper()
	timeout := time.After(deadline)
	for {
		select {
		case got := <-from:
			if got == want {
				return
			}
		case <-timeout:
			f.t.Fatalf("no event: %s", what)
		}
	}
}

// How soon is in TestBackoffDoublesUpToItsLimit: the wait before a first contact never exceeds a second.
func TestAControlPlaneThatBeginsToAnswerIsSeen(t *testing.T) {
	f, server := newFixture(t), newAPIServer(t)
	f.kubeconfig("c", server.kubeconfig())
	_, err := f.pool.Get(context.Background(), key("c"))
	if !errors.Is(err, workload.ErrNotConnected) {
		t.Fatalf("error %v, want ErrNotConnected", err)
	}
	// Long enough for the backoff to reach its limit.
	var first time.Time
	f.eventually("attempts for two seconds", func() bool {
		probe := f.pool.Health(key("c")).LastProbe
		if first.IsZero() {
			first = probe
		}
		return probe.Sub(first) > 2*time.Second
	})

	server.up()
	f.receive("the cluster connects", f.clusters, "c")
	if health := f.pool.Health(key("c")); !health.Connected || health.Err != nil || health.LastSuccess.IsZero() {
		t.Errorf("health: %+v", health)
	}
}

func TestALostClusterIsToldAndFoundAgain(t *testing.T) {
	f, server := newFixture(t), newAPIServer(t)
	f.kubeconfig("c", server.kubeconfig())
	server.up()
	f.eventually("the first connection", f.connected("c"))
	f.receive("the first connection", f.clusters, "c")

	server.down()
	f.receive("the loss", f.clusters, "c")
	health := f.pool.Health(key("c"))
	if health.Connected || health.Err == nil || health.LastSuccess.IsZero() {
		t.Errorf("health: %+v", health)
	}
	if _, err := f.pool.Get(context.Background(), key("c")); !errors.Is(err, workload.ErrNotConnected) {
		t.Errorf("error %v, want ErrNotConnected", err)
	}

	server.up()
	f.receive("the second connection", f.clusters, "c")
	f.eventually("the second connection", f.connected("c"))
}

func TestAClusterThatNeverAnswersSlowsNoOther(t *testing.T) {
	f, server := newFixture(t), newAPIServer(t)
	// It accepts connections and says nothing.
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	dead := newAPIServer(t)
	dead.addr = silent.Addr().String()
	f.kubeconfig("dead", dead.kubeconfig())
	f.kubeconfig("live", server.kubeconfig())
	server.up()

	if _, err := f.pool.Get(context.Background(), key("dead")); !errors.Is(err, workload.ErrNotConnected) {
		t.Fatalf("error %v, want ErrNotConnected", err)
	}
	f.eventually("the live cluster connects", f.connected("live"))
	if f.connected("dead")() {
		t.Error("the silent cluster counts as connected")
	}
}

func TestAChangedKubeconfigIsUsed(t *testing.T) {
	f, before, after := newFixture(t), newAPIServer(t), newAPIServer(t)
	before.up()
	after.up()
	f.kubeconfig("c", before.kubeconfig())
	f.eventually("a connection with the first kubeconfig", f.connected("c"))
	f.kubeconfig("c", after.kubeconfig())
	f.eventually("a connection with the second kubeconfig", func() bool {
		connection, err := f.pool.Get(context.Background(), key("c"))
		return err == nil && connection.Config.Host == "https://"+after.addr
	})
}

func TestAKubeconfigThatComesLaterIsFound(t *testing.T) {
	f, server := newFixture(t), newAPIServer(t)
	server.up()
	f.eventually("the missing Secret is named", func() bool {
		_, err := f.pool.Get(context.Background(), key("c"))
		return errors.Is(err, workload.ErrNotConnected) && f.pool.Health(key("c")).Err != nil
	})
	f.kubeconfig("c", server.kubeconfig())
	f.eventually("the cluster connects", f.connected("c"))
}

func TestAClusterThatIsGoneIsNotTriedForEver(t *testing.T) {
	f := newFixture(t)
	if _, err := f.pool.Get(context.Background(), key("c")); !errors.Is(err, workload.ErrNotConnected) {
		t.Fatalf("error %v, want ErrNotConnected", err)
	}
	f.eventually("an attempt", func() bool { return !f.pool.Health(key("c")).LastProbe.IsZero() })
	if err := f.mgmt.Delete(context.Background(), &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}); err != nil {
		t.Fatal(err)
	}
	f.eventually("it is forgotten", func() bool { return f.pool.Health(key("c")) == (workload.Health{}) })
}

func TestNodesComeFromTheCacheAndHeartbeatsAreNoEvents(t *testing.T) {
	f, server := newFixture(t), newAPIServer(t)
	f.kubeconfig("c", server.kubeconfig())
	server.up()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}}}
	node.Spec.ProviderID = "foo://1"
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Unix(1, 0)}}
	server.put(node)
	f.eventually("the cluster connects", f.connected("c"))
	f.receive("a Node", f.nodes, "c/n")

	connection, err := f.pool.Get(context.Background(), key("c"))
	if err != nil {
		t.Fatal(err)
	}
	list := &corev1.NodeList{}
	if err := connection.Client.List(context.Background(), list, client.MatchingFields{workload.IndexProviderID: "foo://1"}); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 1 || list.Items[0].Name != "n" || len(list.Items[0].ManagedFields) != 0 {
		t.Errorf("nodes: %+v", list.Items)
	}

	node.Status.Conditions[0].LastHeartbeatTime = metav1.Unix(2, 0)
	server.put(node)
	other := node.DeepCopy()
	other.Name = "other"
	server.put(other)
	select {
	case got := <-f.nodes:
		if got != "c/other" {
			t.Errorf("event of %s: a heartbeat came through", got)
		}
	case <-time.After(deadline):
		t.Error("no event of the other Node")
	}
}

func TestForgetLeavesNothingBehind(t *testing.T) {
	ignore := goleak.IgnoreCurrent()
	server := newAPIServer(t)
	server.up()
	mgmt := newManagement(t)
	f := &fixture{t: t, mgmt: mgmt, pool: workload.NewPool(mgmt, workload.Options{})}
	f.kubeconfig("c", server.kubeconfig())
	f.eventually("the cluster connects", f.connected("c"))
	f.pool.Forget(key("c"))
	if health := f.pool.Health(key("c")); health != (workload.Health{}) {
		t.Errorf("health after Forget: %+v", health)
	}
	server.down()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := f.pool.Start(ctx); err != nil {
		t.Fatal(err)
	}
	goleak.VerifyNone(t, ignore)
}
