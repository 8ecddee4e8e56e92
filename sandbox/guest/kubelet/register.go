package kubelet

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/component-helpers/apimachinery/lease"
	nodeutil "k8s.io/component-helpers/node/util"
	"k8s.io/utils/clock"
)

const (
	// leaseSeconds and leaseRenewal are a kubelet's defaults: a lease of 40 s,
	// renewed at a quarter of it.
	leaseSeconds = 40
	leaseRenewal = leaseSeconds * time.Second / 4
	// statusCheck is how often the kubelet looks whether its Node says what it
	// should (nodeStatusUpdateFrequency), statusPeriod how often it writes that
	// when it does; the Lease is the sign of life.
	statusCheck  = 10 * time.Second
	statusPeriod = time.Minute
)

// register creates the Node, or finds the one of an earlier boot, and tries for
// as long as the API server does not let it.
func (k *Kubelet) register(ctx context.Context) error {
	backoff := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Steps: 1 << 30, Cap: 7 * time.Second}
	last := ""
	return wait.ExponentialBackoffWithContext(ctx, backoff, func(ctx context.Context) (bool, error) {
		node, err := k.createOrFind(ctx)
		if err != nil {
			if text := err.Error(); text != last {
				k.Log("Unable to register node %s with API server: %v", k.settings.NodeName, err)
				last = text
			}
			return false, nil
		}
		k.remember(node)
		k.Log("Successfully registered node %s", node.Name)
		return true, nil
	})
}

func (k *Kubelet) createOrFind(ctx context.Context) (*corev1.Node, error) {
	node, err := k.client.CoreV1().Nodes().Create(ctx, newNode(k.settings, k.Machine, time.Now()), metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return node, err
	}
	if node, err = k.client.CoreV1().Nodes().Get(ctx, k.settings.NodeName, metav1.GetOptions{}); err != nil {
		return nil, err
	}
	k.Log("Node %s was previously registered", node.Name)
	wanted := node.DeepCopy()
	for key, value := range defaultLabels(k.settings) {
		metav1.SetMetaDataLabel(&wanted.ObjectMeta, key, value)
	}
	if len(wanted.Labels) == len(node.Labels) {
		return node, nil
	}
	return k.client.CoreV1().Nodes().Update(ctx, wanted, metav1.UpdateOptions{})
}

func (k *Kubelet) remember(node *corev1.Node) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.nodeUID, k.podCIDR = node.UID, node.Spec.PodCIDR
}

// lease renews the Node's Lease until the context ends. It belongs to the Node:
// without one there is none to make.
func (k *Kubelet) lease(ctx context.Context) {
	name := k.settings.NodeName
	own := func(l *coordinationv1.Lease) error {
		if len(l.OwnerReferences) > 0 {
			return nil
		}
		node, err := k.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		l.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: name, UID: node.UID}}
		return nil
	}
	lease.NewController(clock.RealClock{}, k.client, name, leaseSeconds, nil, leaseRenewal, name, corev1.NamespaceNodeLease, own).Run(ctx)
}

// reportStatus writes the Node's status: at once, when it differs from what the
// API server has, and every statusPeriod.
func (k *Kubelet) reportStatus(ctx context.Context) {
	var reported time.Time
	last := ""
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		wrote, err := k.writeStatus(ctx, time.Since(reported) >= statusPeriod)
		switch {
		case err != nil && ctx.Err() == nil:
			if text := err.Error(); text != last {
				k.Log("Error updating node status, will retry: %v", err)
				last = text
			}
		case wrote:
			reported, last = time.Now(), ""
		}
	}, statusCheck)
}

// writeStatus writes the status if there is a reason to, and tells whether it
// did. It is a patch, as others may change the Node at the same time.
func (k *Kubelet) writeStatus(ctx context.Context, force bool) (wrote bool, err error) {
	// Version 0 may be answered from the API server's cache.
	node, err := k.client.CoreV1().Nodes().Get(ctx, k.settings.NodeName, metav1.GetOptions{ResourceVersion: "0"})
	if err != nil {
		return false, err
	}
	k.remember(node)
	wanted := node.DeepCopy()
	wanted.Status = nodeStatus(k.settings, k.Machine, node.Status, time.Now())
	if !force && sameBeyondHeartbeat(node.Status, wanted.Status) {
		return false, nil
	}
	_, _, err = nodeutil.PatchNodeStatus(k.client.CoreV1(), types.NodeName(node.Name), node, wanted)
	return err == nil, err
}
