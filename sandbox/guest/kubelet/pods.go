package kubelet

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/millwright-dev/millwright/sandbox/guest/staticpod"
)

// endingTakes is how long a deleted pod takes to end when it is given the time.
const endingTakes = time.Second

// pods keeps the pods of one Node as the API server has them and reports on them.
type pods struct {
	kubelet *Kubelet
	queue   workqueue.TypedRateLimitingInterface[types.NamespacedName]
	store   cache.Store

	mu     sync.Mutex
	ending map[types.NamespacedName]ending
}

// ending is a pod that was deleted and when that was seen.
type ending struct {
	uid   types.UID
	since time.Time
}

func newPods(k *Kubelet) *pods {
	return &pods{
		kubelet: k, ending: map[types.NamespacedName]ending{}, store: cache.NewStore(cache.MetaNamespaceKeyFunc),
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](50*time.Millisecond, 30*time.Second)),
	}
}

func (p *pods) run(ctx context.Context) error {
	defer p.queue.ShutDown()
	source := cache.NewListWatchFromClient(p.kubelet.client.CoreV1().RESTClient(), "pods", metav1.NamespaceAll,
		fields.OneTermEqualSelector("spec.nodeName", p.kubelet.settings.NodeName))
	add := func(obj any) {
		if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = tombstone.Obj
		}
		if pod, ok := obj.(*corev1.Pod); ok {
			p.queue.Add(types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name})
		}
	}
	store, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: source, ObjectType: &corev1.Pod{},
		Handler:   cache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(_, obj any) { add(obj) }, DeleteFunc: add},
		Transform: withoutManagedFields,
	})
	p.mu.Lock()
	p.store = store
	p.mu.Unlock()
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return ctx.Err()
	}
	go p.followStatic(ctx)
	go func() {
		<-ctx.Done()
		p.queue.ShutDown()
	}()
	for p.next(ctx) {
	}
	return ctx.Err()
}

// withoutManagedFields halves what a pod takes in memory.
func withoutManagedFields(obj any) (any, error) {
	if pod, ok := obj.(*corev1.Pod); ok {
		pod.ManagedFields = nil
	}
	return obj, nil
}

// followStatic looks at every static pod when one of them changed.
func (p *pods) followStatic(ctx context.Context) {
	changed := p.kubelet.Static.Subscribe()
	for {
		for _, state := range p.kubelet.Static.States() {
			p.queue.Add(types.NamespacedName{Namespace: state.Pod.Namespace, Name: mirrorName(state, p.kubelet.settings.NodeName)})
		}
		for _, obj := range p.list() {
			if isMirror(obj) {
				p.queue.Add(types.NamespacedName{Namespace: obj.Namespace, Name: obj.Name})
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

func (p *pods) next(ctx context.Context) bool {
	key, shutdown := p.queue.Get()
	if shutdown {
		return false
	}
	defer p.queue.Done(key)
	again, err := p.sync(ctx, key)
	switch {
	case err != nil && !ignorable(err):
		if p.queue.NumRequeues(key) == 0 && ctx.Err() == nil {
			p.kubelet.Log("Error syncing pod %s, will retry: %v", key, err)
		}
		p.queue.AddRateLimited(key)
	case err != nil:
		// The watch brings what the write did not know.
		p.queue.AddRateLimited(key)
	default:
		p.queue.Forget(key)
		if again > 0 {
			p.queue.AddAfter(key, again)
		}
	}
	return true
}

func ignorable(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err)
}

func (p *pods) list() []*corev1.Pod {
	p.mu.Lock()
	store := p.store
	p.mu.Unlock()
	var all []*corev1.Pod
	for _, obj := range store.List() {
		all = append(all, obj.(*corev1.Pod))
	}
	return all
}

// get returns a copy of a pod, nil when the Node has none of that name.
func (p *pods) get(key types.NamespacedName) *corev1.Pod {
	p.mu.Lock()
	store := p.store
	p.mu.Unlock()
	obj, exists, err := store.GetByKey(key.String())
	if err != nil || !exists {
		return nil
	}
	return obj.(*corev1.Pod).DeepCopy()
}

func (p *pods) static(key types.NamespacedName) *staticpod.State {
	for _, state := range p.kubelet.Static.States() {
		if state.Pod.Namespace == key.Namespace && mirrorName(state, p.kubelet.settings.NodeName) == key.Name {
			return &state
		}
	}
	return nil
}

func (p *pods) sync(ctx context.Context, key types.NamespacedName) (again time.Duration, err error) {
	pod, state := p.get(key), p.static(key)
	if state != nil || pod != nil && isMirror(pod) {
		return 0, p.syncMirror(ctx, key, pod, state)
	}
	if pod == nil {
		p.mu.Lock()
		delete(p.ending, key)
		p.mu.Unlock()
		return 0, nil
	}
	if pod.DeletionTimestamp != nil {
		return p.end(ctx, key, pod)
	}
	podIP := pod.Status.PodIP
	if pod.Spec.HostNetwork {
		podIP = p.kubelet.Machine.Address
	} else if podIP == "" {
		if podIP, err = p.address(ctx); err != nil {
			return 0, err
		}
	}
	status, again := runningStatus(pod, p.kubelet.Machine.Address, podIP, time.Now())
	return again, p.write(ctx, pod, status)
}

func (p *pods) syncMirror(ctx context.Context, key types.NamespacedName, pod *corev1.Pod, state *staticpod.State) error {
	api := p.kubelet.client.CoreV1().Pods(key.Namespace)
	switch planMirror(state, pod) {
	case mirrorCreate:
		p.kubelet.mu.Lock()
		uid := p.kubelet.nodeUID
		p.kubelet.mu.Unlock()
		_, err := api.Create(ctx, mirrorPod(*state, p.kubelet.settings.NodeName, uid), metav1.CreateOptions{})
		return err
	case mirrorDelete:
		return p.remove(ctx, pod)
	}
	if pod == nil {
		return nil
	}
	return p.write(ctx, pod, staticStatus(pod, *state, p.kubelet.Machine.Address, time.Now()))
}

// write reports a status if it says something new.
func (p *pods) write(ctx context.Context, pod *corev1.Pod, status corev1.PodStatus) error {
	if equality.Semantic.DeepEqual(pod.Status, status) {
		return nil
	}
	pod.Status = status
	_, err := p.kubelet.client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	return err
}

// end lets a deleted pod go when its containers have had the time to end.
func (p *pods) end(ctx context.Context, key types.NamespacedName, pod *corev1.Pod) (again time.Duration, err error) {
	p.mu.Lock()
	seen := p.ending[key]
	if seen.uid != pod.UID {
		seen = ending{pod.UID, time.Now()}
		p.ending[key] = seen
	}
	p.mu.Unlock()
	takes := endingTakes
	if grace := pod.DeletionGracePeriodSeconds; grace != nil {
		takes = min(takes, time.Duration(*grace)*time.Second)
	}
	if left := takes - time.Since(seen.since); left > 0 {
		return left, nil
	}
	return 0, p.remove(ctx, pod)
}

func (p *pods) remove(ctx context.Context, pod *corev1.Pod) error {
	now := int64(0)
	err := p.kubelet.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &pod.UID}})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// address returns a free pod address of the Node.
func (p *pods) address(ctx context.Context) (string, error) {
	k := p.kubelet
	k.mu.Lock()
	cidr := k.podCIDR
	k.mu.Unlock()
	if cidr == "" {
		node, err := k.client.CoreV1().Nodes().Get(ctx, k.settings.NodeName, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		k.remember(node)
		cidr = node.Spec.PodCIDR
	}
	used := map[string]bool{}
	for _, pod := range p.list() {
		used[pod.Status.PodIP] = true
	}
	return nextAddress(cidr, k.Machine.Address, used), nil
}
