package machine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// waitForVolumes waits until the volumes of evicted pods are detached, so that they can be attached elsewhere and are
// not destroyed with the machine.
func (r *Reconciler) waitForVolumes(ctx context.Context, s *snapshot) (*waiting, error) {
	if skipVolumes(s) {
		return nil, nil
	}
	status := s.machine.Status.Deletion
	begin(&status.WaitForNodeVolumeDetachStartTime, s.now)
	since := status.WaitForNodeVolumeDetachStartTime.Time
	left, limited := timeLeft(s.machine.Spec.Deletion.NodeVolumeDetachTimeoutSeconds, since, s.now)
	if limited && left <= 0 {
		if waitedFor(s, clusterv1.MachineDeletingWaitingForVolumeDetachReason) {
			r.Recorder.Eventf(s.machine, nil, "Warning", "NodeVolumeDetachTimeout", "DetachVolumes",
				"Gave up waiting for volumes after nodeVolumeDetachTimeoutSeconds")
		}
		return nil, nil
	}
	wait := &waiting{reason: clusterv1.MachineDeletingWaitingForVolumeDetachReason, after: max(left, 0)}
	if s.connection == nil {
		wait.message = unreachableMessage(s, "wait for the volumes of", clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation)
		return wait, nil
	}
	attached, err := r.attachedVolumes(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("list the volumes of Node %q of Machine %q: %w", s.node.Name, s.machine.Name, err)
	}
	if len(attached) == 0 {
		return nil, nil
	}
	wait.message = fmt.Sprintf("Waiting since %s until volumes are detached from Node %s: PersistentVolumes %s",
		stamp(since), s.node.Name, strings.Join(attached, ", "))
	wait.after = earliest(wait.after, retryWait(s.now.Sub(since)))
	return wait, nil
}

// attachedVolumes names the PersistentVolumes attached to the Node, without those of pods that no drain evicts: these
// stay attached until the machine is gone.
func (r *Reconciler) attachedVolumes(ctx context.Context, s *snapshot) ([]string, error) {
	attachments := &storagev1.VolumeAttachmentList{}
	if err := s.connection.Client.List(ctx, attachments); err != nil {
		return nil, err
	}
	var names []string
	for _, attachment := range attachments.Items {
		name := attachment.Spec.Source.PersistentVolumeName
		if attachment.Spec.NodeName == s.node.Name && attachment.Status.Attached && name != nil {
			names = append(names, *name)
		}
	}
	if len(names) == 0 {
		return nil, nil
	}

	pods, err := s.connection.Clientset.CoreV1().Pods("").List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", s.node.Name).String(),
	})
	if err != nil {
		return nil, err
	}
	claims := claimsOf(pods.Items)
	var out []string
	for _, name := range names {
		volume := &corev1.PersistentVolume{}
		if err := s.connection.Client.Get(ctx, client.ObjectKey{Name: name}, volume); client.IgnoreNotFound(err) != nil {
			return nil, err
		}
		if claim := volume.Spec.ClaimRef; claim == nil || !slices.Contains(claims, claim.Namespace+"/"+claim.Name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out, nil
}

// claimsOf returns the claims that pods use which are still on a drained Node and not on their way out.
func claimsOf(pods []corev1.Pod) []string {
	var out []string
	for _, pod := range pods {
		for _, volume := range pod.Spec.Volumes {
			switch {
			case pod.DeletionTimestamp != nil:
			case volume.PersistentVolumeClaim != nil:
				out = append(out, pod.Namespace+"/"+volume.PersistentVolumeClaim.ClaimName)
			case volume.Ephemeral != nil:
				out = append(out, pod.Namespace+"/"+pod.Name+"-"+volume.Name)
			}
		}
	}
	return out
}
