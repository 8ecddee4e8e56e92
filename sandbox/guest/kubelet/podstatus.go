package kubelet

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/millwright-dev/millwright/sandbox/guest/staticpod"
)

// jobRuns is how long a pod runs that is not to be restarted.
const jobRuns = time.Second

// runningStatus returns the status of an ordinary pod of the Node: everything
// runs and is ready; one that is meant to end ends after a moment. again is when
// to look at it again, zero for never.
func runningStatus(pod *corev1.Pod, hostIP, podIP string, now time.Time) (status corev1.PodStatus, again time.Duration) {
	status = *pod.Status.DeepCopy()
	if status.Phase == corev1.PodSucceeded || status.Phase == corev1.PodFailed {
		return status, 0
	}
	started := metav1.NewTime(now.Truncate(time.Second))
	if status.StartTime != nil {
		started = *status.StartTime
	}
	status.StartTime, status.ObservedGeneration = &started, pod.Generation
	setAddresses(&status, hostIP, podIP)
	ends := pod.Spec.RestartPolicy != corev1.RestartPolicyAlways
	done := ends && !now.Before(started.Add(jobRuns))
	if ends && !done {
		again = max(started.Add(jobRuns).Sub(now), time.Millisecond)
	}

	status.Phase = corev1.PodRunning
	if done {
		status.Phase = corev1.PodSucceeded
	}
	status.InitContainerStatuses, status.ContainerStatuses = nil, nil
	for _, container := range pod.Spec.InitContainers {
		sidecar := container.RestartPolicy != nil && *container.RestartPolicy == corev1.ContainerRestartPolicyAlways
		status.InitContainerStatuses = append(status.InitContainerStatuses, containerStatus(pod.UID, container, started, done || !sidecar, now))
	}
	for _, container := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, containerStatus(pod.UID, container, started, done, now))
	}
	keepFinished(status.InitContainerStatuses, pod.Status.InitContainerStatuses)
	keepFinished(status.ContainerStatuses, pod.Status.ContainerStatuses)

	reason := ""
	if done {
		reason = "PodCompleted"
	}
	set := func(kind corev1.PodConditionType, ok bool, reason string) {
		setPodCondition(&status, kind, ok, reason, pod.Generation, metav1.NewTime(now))
	}
	set(corev1.PodReadyToStartContainers, !done, "")
	set(corev1.PodInitialized, true, reason)
	set(corev1.ContainersReady, !done, reason)
	ready := !done
	for _, gate := range pod.Spec.ReadinessGates {
		if !conditionTrue(pod.Status.Conditions, gate.ConditionType) {
			ready, reason = false, "ReadinessGatesNotReady"
		}
	}
	set(corev1.PodReady, ready, reason)
	return status, again
}

// staticStatus returns the status of a static pod from the state of its process.
func staticStatus(pod *corev1.Pod, state staticpod.State, hostIP string, now time.Time) corev1.PodStatus {
	status := *pod.Status.DeepCopy()
	if status.StartTime == nil {
		started := metav1.NewTime(now.Truncate(time.Second))
		status.StartTime = &started
	}
	status.ObservedGeneration = pod.Generation
	setAddresses(&status, hostIP, hostIP)
	status.Phase = corev1.PodRunning
	if state.StartedAt.IsZero() {
		status.Phase = corev1.PodPending
	}
	status.ContainerStatuses = nil
	for _, container := range pod.Spec.Containers {
		c := containerStatus(types.UID(state.Hash), container, metav1.NewTime(state.StartedAt.Truncate(time.Second)), false, now)
		started := state.Started
		c.Ready, c.Started, c.RestartCount = state.Ready, &started, state.Restarts
		if !state.Running {
			c.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: state.Waiting, Message: state.Message}}
			c.ContainerID = ""
		}
		if exit := state.LastExit; exit != nil {
			c.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{
				ExitCode: int32(exit.Code), Reason: exit.Reason,
				StartedAt: metav1.NewTime(exit.Started.Truncate(time.Second)), FinishedAt: metav1.NewTime(exit.Finished.Truncate(time.Second)),
			}
		}
		status.ContainerStatuses = append(status.ContainerStatuses, c)
	}
	reason := ""
	if !state.Ready {
		reason = "ContainersNotReady"
	}
	set := func(kind corev1.PodConditionType, ok bool, reason string) {
		setPodCondition(&status, kind, ok, reason, pod.Generation, metav1.NewTime(now))
	}
	set(corev1.PodReadyToStartContainers, true, "")
	set(corev1.PodInitialized, true, "")
	set(corev1.PodReady, state.Ready, reason)
	set(corev1.ContainersReady, state.Ready, reason)
	set(corev1.PodScheduled, true, "")
	return status
}

func setAddresses(status *corev1.PodStatus, hostIP, podIP string) {
	status.HostIP, status.HostIPs = hostIP, []corev1.HostIP{{IP: hostIP}}
	status.PodIP, status.PodIPs = podIP, []corev1.PodIP{{IP: podIP}}
}

func containerStatus(pod types.UID, container corev1.Container, started metav1.Time, done bool, now time.Time) corev1.ContainerStatus {
	sum := sha256.Sum256([]byte(string(pod) + "/" + container.Name + "/" + started.UTC().String()))
	id := "process://" + hex.EncodeToString(sum[:])
	ready := !done
	status := corev1.ContainerStatus{
		Name: container.Name, Image: container.Image, ImageID: container.Image, ContainerID: id,
		Ready: ready, Started: &ready,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: started}},
	}
	if done {
		status.Ready = false
		status.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			Reason: "Completed", StartedAt: started, FinishedAt: metav1.NewTime(now.Truncate(time.Second)), ContainerID: id}}
	}
	return status
}

// keepFinished leaves containers that ended before as they ended.
func keepFinished(statuses, former []corev1.ContainerStatus) {
	for n := range statuses {
		for _, f := range former {
			if f.Name == statuses[n].Name && f.State.Terminated != nil && statuses[n].State.Terminated != nil {
				statuses[n] = f
			}
		}
	}
}

func setPodCondition(status *corev1.PodStatus, kind corev1.PodConditionType, ok bool, reason string, generation int64, now metav1.Time) {
	condition := corev1.PodCondition{Type: kind, Status: corev1.ConditionFalse, Reason: reason, LastTransitionTime: now, ObservedGeneration: generation}
	if ok {
		condition.Status = corev1.ConditionTrue
	}
	if reason == "ContainersNotReady" {
		condition.Message = fmt.Sprintf("containers with unready status: %v", unready(status.ContainerStatuses))
	}
	for n := range status.Conditions {
		if former := &status.Conditions[n]; former.Type == kind {
			if former.Status == condition.Status {
				condition.LastTransitionTime = former.LastTransitionTime
			}
			*former = condition
			return
		}
	}
	status.Conditions = append(status.Conditions, condition)
}

func unready(statuses []corev1.ContainerStatus) []string {
	var names []string
	for _, s := range statuses {
		if !s.Ready {
			names = append(names, s.Name)
		}
	}
	return names
}

func conditionTrue(conditions []corev1.PodCondition, kind corev1.PodConditionType) bool {
	for _, c := range conditions {
		if c.Type == kind {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
