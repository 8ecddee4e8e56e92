package machine

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/workload"
)

// findNode looks for the Machine's Node in the cache of the workload cluster.
func (r *Reconciler) findNode(ctx context.Context, s *snapshot) error {
	providerID := s.providerID()
	reader := s.connection.Client
	if s.nodeBefore != "" {
		node := &corev1.Node{}
		err := reader.Get(ctx, client.ObjectKey{Name: s.nodeBefore}, node)
		if err == nil && isNodeOf(node, providerID) {
			s.node, s.byUUID = node, node.Spec.ProviderID == ""
			return nil
		}
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("get Node %q of Machine %q: %w", s.nodeBefore, s.machine.Name, err)
		}
	}
	if providerID == "" {
		return nil
	}
	byProviderID := &corev1.NodeList{}
	if err := reader.List(ctx, byProviderID, client.MatchingFields{workload.IndexProviderID: providerID}); err != nil {
		return fmt.Errorf("find the Node of Machine %q: %w", s.machine.Name, err)
	}
	var byUUID []corev1.Node
	if len(byProviderID.Items) == 0 {
		for _, uuid := range systemUUIDs(providerID) {
			list := &corev1.NodeList{}
			if err := reader.List(ctx, list, client.MatchingFields{workload.IndexSystemUUID: uuid}); err != nil {
				return fmt.Errorf("find the Node of Machine %q: %w", s.machine.Name, err)
			}
			byUUID = append(byUUID, list.Items...)
		}
	}
	s.node, s.byUUID, s.nodeErr = matchNode(providerID, byProviderID.Items, byUUID)
	return nil
}

// syncNode writes labels, annotations and taints of the Machine to its Node, in one patch and only if something
// differs.
func (r *Reconciler) syncNode(ctx context.Context, s *snapshot) error {
	wanted := wantedNode(s.machine, s.node)
	if equality.Semantic.DeepEqual(wanted, s.node) {
		return nil
	}
	// Taints are one list, which the kubelet and Kubernetes' controllers write too.
	change := client.MergeFromWithOptions(s.node, client.MergeFromWithOptimisticLock{})
	if err := s.connection.Client.Patch(ctx, wanted, change); err != nil {
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			return nil // The cache was behind; the event that it is about to get brings us back.
		}
		return fmt.Errorf("sync Node %q of Machine %q: %w", s.node.Name, s.machine.Name, err)
	}
	s.node = wanted
	return nil
}
