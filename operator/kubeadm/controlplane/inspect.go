package controlplane

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/pki"
	"github.com/millwright-dev/millwright/internal/workload"
)

const (
	// inspectWithin bounds a whole inspection.
	inspectWithin = 10 * time.Second

	// kubeadmConfigMap is left in kube-system by kubeadm init (phase upload-config), and makes joins possible.
	kubeadmConfigMap = "kubeadm-config"
)

// inspect looks at the workload cluster. What fails is part of the result.
func (r *Reconciler) inspect(ctx context.Context, s *snapshot, etcdCA pki.KeyPair) (inspection, error) {
	key := client.ObjectKeyFromObject(s.cluster)
	connection, err := r.Workload.Get(ctx, key)
	if errors.Is(err, workload.ErrNotConnected) {
		health := r.Workload.Health(key)
		out := inspection{lastSeen: health.LastSuccess}
		if health.LastSuccess.IsZero() {
			out.settling = max(0, settleFor-r.Now().Sub(health.Since))
		}
		return out, nil
	}
	if err != nil {
		return inspection{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, inspectWithin)
	defer cancel()

	out := inspection{
		connected: true,
		nodes:     map[string]*corev1.Node{},
		pods:      map[string]*corev1.Pod{},
		failures:  map[string]error{},
	}
	if !s.initialized() {
		key := client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: kubeadmConfigMap}
		// Any failure, that of a missing role above all, means "not yet".
		out.kubeadmConfig = connection.Client.Get(ctx, key, &corev1.ConfigMap{}) == nil
	}
	r.readObjects(ctx, s, connection.Client, &out)
	var wg sync.WaitGroup
	seen := out
	wg.Go(func() { out.expiries, out.readAgain = r.readExpiries(ctx, s, connection, seen) })
	if s.stackedEtcd() {
		out.etcd, out.etcdErr = r.askEtcd(ctx, s, etcdCA)
	}
	wg.Wait()
	return out, nil
}

// readObjects gets Nodes and static pods, each by its name: few objects, no list, all at once.
func (r *Reconciler) readObjects(ctx context.Context, s *snapshot, c client.Client, out *inspection) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	get := func(name string, key client.ObjectKey, obj client.Object, found func()) {
		wg.Go(func() {
			err := c.Get(ctx, key, obj)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				found()
			case !apierrors.IsNotFound(err):
				out.failures[name] = err
			}
		})
	}
	for _, replica := range s.replicas {
		node := replica.node()
		if node == "" || replica.released() {
			continue
		}
		nodeObject := &corev1.Node{}
		get(node, client.ObjectKey{Name: node}, nodeObject, func() { out.nodes[node] = nodeObject })
		for _, component := range components {
			name := podName(component.name, node)
			if component.name == "etcd" && !s.stackedEtcd() {
				continue
			}
			pod := &corev1.Pod{}
			get(name, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: name}, pod, func() { out.pods[name] = pod })
		}
	}
	wg.Wait()
}
