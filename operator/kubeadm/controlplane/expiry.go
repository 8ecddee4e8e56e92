package controlplane

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/millwright-dev/millwright/internal/etcd"
	"github.com/millwright-dev/millwright/internal/kubeadm"
	"github.com/millwright-dev/millwright/internal/patch"
	"github.com/millwright-dev/millwright/internal/pki"
	"github.com/millwright-dev/millwright/internal/workload"
)

const (
	// expiryWithin bounds the handshake with one API server.
	expiryWithin = 3 * time.Second
	// expiryAgain is how long after a handshake that failed the next is tried, doubled with each, up to expiryAgainMax.
	expiryAgain, expiryAgainMax = 5 * time.Second, 10 * time.Minute
	// expiryDoubt is how old a reading may be by which a machine is replaced: certificates can be renewed on the machine,
	// and API servers take new ones up without a restart.
	expiryDoubt = time.Hour
)

// readExpiry returns when the certificate ends that an API server serves with.
type readExpiry func(ctx context.Context, connection *workload.Connection, pod *corev1.Pod) (time.Time, error)

// shakeHands asks the API server of a pod, through that of the cluster: a machine's address may not be reachable from here.
func shakeHands(ctx context.Context, connection *workload.Connection, pod *corev1.Pod) (time.Time, error) {
	forwarder, err := etcd.NewForwarder(connection.Config, connection.Clientset, pod.Namespace, pod.Name, kubeadm.APIServerPort(pod))
	if err != nil {
		return time.Time{}, err
	}
	defer forwarder.Close()
	chain, err := pki.ServedChain(ctx, "localhost", func(ctx context.Context) (net.Conn, error) { return forwarder.Dial(ctx, "") })
	if err != nil {
		return time.Time{}, err
	}
	if len(chain) == 0 {
		return time.Time{}, errors.New("it shows no certificate")
	}
	return chain[0].NotAfter, nil
}

// reading is a handshake with the API server of a Machine: with which of its runs, when, and what it showed; an expiry of
// zero is a handshake that failed, and not for the first time if failures is more than one.
type reading struct {
	run        string
	at, expiry time.Time
	failures   int
}

// retry returns how long after a handshake that failed the next is tried.
func (r reading) retry() time.Duration {
	return min(expiryAgain<<min(max(r.failures, 1)-1, 10), expiryAgainMax)
}

// runOf tells one run of an API server from the next. Certificates that kubeadm has renewed are served from a restart
// on (kubernetes.io, "Certificate Management with kubeadm").
func runOf(pod *corev1.Pod) string {
	if len(pod.Status.ContainerStatuses) == 0 {
		return ""
	}
	status := pod.Status.ContainerStatuses[0]
	var started time.Time
	if status.State.Running != nil {
		started = status.State.Running.StartedAt.Time
	}
	return fmt.Sprintf("%s %d %s", status.ContainerID, status.RestartCount, started.UTC().Format(time.RFC3339))
}

// expiriesToRead returns the Machines whose certificate is to be looked at now, with their API server's pod: once for
// each run of the API server, and before a Machine is replaced for it. Nothing is read of a control plane at rest.
func expiriesToRead(s *snapshot, nodes map[string]*corev1.Node, pods map[string]*corev1.Pod, known map[types.UID]reading) map[*replica]*corev1.Pod {
	out := map[*replica]*corev1.Pod{}
	for _, r := range s.replicas {
		node := nodes[r.node()]
		pod := pods[podName("kube-apiserver", r.node())]
		if r.deleting() || node == nil || unreachable(node) || pod == nil || ofEarlierNode(pod, node) || !podReady(pod) {
			continue
		}
		last, read := known[r.machine.UID]
		age := s.now.Sub(last.at)
		due := renewalDue(s, r)
		switch {
		case !read, last.run != runOf(pod):
		case last.expiry.IsZero() && age >= last.retry():
		case !due.IsZero() && !s.now.Before(due) && age >= expiryDoubt:
		default:
			continue
		}
		out[r] = pod
	}
	return out
}

func podReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// readExpiries reads what is to be read, all at once, and returns all that is known by Machine, and when to try again what
// cannot be read now; zero for never. No decision waits for it.
func (r *Reconciler) readExpiries(ctx context.Context, s *snapshot, connection *workload.Connection, seen inspection) (expiries map[string]time.Time, again time.Duration) {
	key := client.ObjectKeyFromObject(s.controlPlane)
	var wg sync.WaitGroup
	known := r.readings.of(key)
	for replica, pod := range expiriesToRead(s, seen.nodes, seen.pods, known) {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, expiryWithin)
			defer cancel()
			expiry, err := r.readExpiry(ctx, connection, pod)
			now := reading{run: runOf(pod), at: s.now, expiry: expiry}
			if err != nil {
				now.expiry, now.failures = time.Time{}, known[replica.machine.UID].failures+1
				log.FromContext(ctx).Info("Cannot read the certificate of an API server", "pod", pod.Name, "cause", err.Error(), "again in", now.retry())
			}
			r.readings.note(key, replica.machine.UID, now)
		})
	}
	wg.Wait()
	r.readings.keep(key, s.replicas)
	known = r.readings.of(key)
	expiries = map[string]time.Time{}
	for _, replica := range s.replicas {
		last, read := known[replica.machine.UID]
		switch {
		case !last.expiry.IsZero():
			expiries[replica.machine.Name] = last.expiry
		case read:
			again = earliest(again, max(last.at.Add(last.retry()).Sub(s.now), time.Second))
		}
	}
	return expiries, again
}

// setExpiry writes on an object of a Machine when its certificates end; zero, which is not known, leaves what it says.
func setExpiry(obj client.Object, expiry time.Time) (changed bool) {
	annotations := obj.GetAnnotations()
	value := expiry.UTC().Format(time.RFC3339)
	if expiry.IsZero() || annotations[clusterv1.MachineCertificatesExpiryDateAnnotation] == value {
		return false
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[clusterv1.MachineCertificatesExpiryDateAnnotation] = value
	obj.SetAnnotations(annotations)
	return true
}

// recordExpiry writes it on the KubeadmConfig of a Machine, where others look for it (contract page, "Labels and annotations").
func (r *Reconciler) recordExpiry(ctx context.Context, s *snapshot, of *replica) error {
	helper := patch.New(of.config, r.Client)
	if !setExpiry(of.config, s.workload.expiries[of.machine.Name]) {
		return nil
	}
	if err := helper.Patch(ctx, of.config); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("record on KubeadmConfig %q when the certificates of its Machine end: %w", of.config.Name, err)
	}
	return nil
}

// readings remembers the last handshake of each Machine of each control plane. After a restart each is read once.
type readings struct {
	mu   sync.Mutex
	last map[client.ObjectKey]map[types.UID]reading
}

func (m *readings) of(controlPlane client.ObjectKey) map[types.UID]reading {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.last[controlPlane])
}

func (m *readings) note(controlPlane client.ObjectKey, machine types.UID, last reading) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last == nil {
		m.last = map[client.ObjectKey]map[types.UID]reading{}
	}
	if m.last[controlPlane] == nil {
		m.last[controlPlane] = map[types.UID]reading{}
	}
	m.last[controlPlane][machine] = last
}

// keep forgets all Machines of a control plane but these.
func (m *readings) keep(controlPlane client.ObjectKey, replicas []*replica) {
	m.mu.Lock()
	defer m.mu.Unlock()
	stay := map[types.UID]bool{}
	for _, r := range replicas {
		stay[r.machine.UID] = true
	}
	for uid := range m.last[controlPlane] {
		if !stay[uid] {
			delete(m.last[controlPlane], uid)
		}
	}
}

func (m *readings) forget(controlPlane client.ObjectKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.last, controlPlane)
}
