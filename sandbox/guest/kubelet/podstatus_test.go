package kubelet

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/millwright-dev/millwright/sandbox/guest/staticpod"
)

func boundPod(policy corev1.RestartPolicy) *corev1.Pod {
	always := corev1.ContainerRestartPolicyAlways
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u", Generation: 1}}
	pod.Spec.RestartPolicy = policy
	pod.Spec.InitContainers = []corev1.Container{{Name: "init"}, {Name: "sidecar", RestartPolicy: &always}}
	pod.Spec.Containers = []corev1.Container{{Name: "c", Image: "i"}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}
	return pod
}

func conditions(status corev1.PodStatus) map[corev1.PodConditionType]string {
	out := map[corev1.PodConditionType]string{}
	for _, c := range status.Conditions {
		out[c.Type] = string(c.Status)
		if c.Reason != "" {
			out[c.Type] += " " + c.Reason
		}
	}
	return out
}

func TestAPodRunsAndIsReady(t *testing.T) {
	pod := boundPod(corev1.RestartPolicyAlways)
	status, again := runningStatus(pod, "127.0.0.9", "10.0.0.2", noon)
	if status.Phase != corev1.PodRunning || again != 0 || status.PodIP != "10.0.0.2" || status.HostIP != "127.0.0.9" || !status.StartTime.Time.Equal(noon) {
		t.Errorf("phase %s, again %s, %s on %s, started %s", status.Phase, again, status.PodIP, status.HostIP, status.StartTime)
	}
	want := map[corev1.PodConditionType]string{"PodScheduled": "True", "PodReadyToStartContainers": "True", "Initialized": "True", "ContainersReady": "True", "Ready": "True"}
	if diff := cmp.Diff(want, conditions(status)); diff != "" {
		t.Error(diff)
	}
	if status.InitContainerStatuses[0].State.Terminated == nil || status.InitContainerStatuses[1].State.Running == nil || !status.ContainerStatuses[0].Ready {
		t.Errorf("containers %+v", status)
	}
	pod.Status = status
	later, _ := runningStatus(pod, "127.0.0.9", "10.0.0.2", noon.Add(time.Hour))
	if diff := cmp.Diff(status, later); diff != "" {
		t.Errorf("nothing changed, and the status did:\n%s", diff)
	}
}

func TestAPodThatIsNotToBeRestartedEnds(t *testing.T) {
	for _, policy := range []corev1.RestartPolicy{corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure} {
		pod := boundPod(policy)
		status, again := runningStatus(pod, "127.0.0.9", "10.0.0.2", noon)
		if status.Phase != corev1.PodRunning || again != jobRuns {
			t.Errorf("%s: phase %s, again in %s", policy, status.Phase, again)
		}
		pod.Status = status
		status, again = runningStatus(pod, "127.0.0.9", "10.0.0.2", noon.Add(jobRuns))
		if status.Phase != corev1.PodSucceeded || again != 0 || conditions(status)["Ready"] != "False PodCompleted" || status.ContainerStatuses[0].State.Terminated == nil {
			t.Errorf("%s: phase %s, again in %s, %v", policy, status.Phase, again, conditions(status))
		}
		pod.Status = status
		if again, _ := runningStatus(pod, "127.0.0.9", "10.0.0.2", noon.Add(time.Hour)); cmp.Diff(status, again) != "" {
			t.Errorf("%s: an ended pod changed", policy)
		}
	}
}

func TestReadinessGatesHoldAPodBack(t *testing.T) {
	pod := boundPod(corev1.RestartPolicyAlways)
	pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.org/gate"}}
	status, _ := runningStatus(pod, "127.0.0.9", "10.0.0.2", noon)
	if got := conditions(status); got["Ready"] != "False ReadinessGatesNotReady" || got["ContainersReady"] != "True" {
		t.Errorf("conditions %v", got)
	}
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: "example.org/gate", Status: corev1.ConditionTrue})
	if status, _ = runningStatus(pod, "127.0.0.9", "10.0.0.2", noon); conditions(status)["Ready"] != "True" {
		t.Errorf("conditions %v", conditions(status))
	}
}

func static(change func(*staticpod.State)) staticpod.State {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "etcd", Namespace: "kube-system"}}
	pod.Spec.Containers = []corev1.Container{{Name: "etcd", Image: "etcd:1"}}
	state := staticpod.State{Manifest: staticpod.Manifest{Pod: pod, Hash: "h1"}}
	change(&state)
	return state
}

func TestAMirrorPodFollowsItsProcess(t *testing.T) {
	cases := map[string]struct {
		state staticpod.State
		phase corev1.PodPhase
		ready string
		check func(corev1.ContainerStatus) bool
	}{
		"not started": {
			state: static(func(s *staticpod.State) { s.Waiting = "CreateContainerError" }), phase: corev1.PodPending, ready: "False ContainersNotReady",
			check: func(c corev1.ContainerStatus) bool { return c.State.Waiting.Reason == "CreateContainerError" },
		},
		"running": {
			state: static(func(s *staticpod.State) { s.Running, s.Started, s.Ready, s.StartedAt = true, true, true, noon }), phase: corev1.PodRunning, ready: "True",
			check: func(c corev1.ContainerStatus) bool { return c.Ready && c.State.Running != nil && *c.Started },
		},
		"crashing": {
			state: static(func(s *staticpod.State) {
				s.StartedAt, s.Restarts, s.Waiting = noon, 3, "CrashLoopBackOff"
				s.LastExit = &staticpod.Exit{Code: 1, Reason: "Error", Started: noon, Finished: noon}
			}),
			phase: corev1.PodRunning, ready: "False ContainersNotReady",
			check: func(c corev1.ContainerStatus) bool {
				return c.RestartCount == 3 && c.State.Waiting.Reason == "CrashLoopBackOff" && c.LastTerminationState.Terminated.ExitCode == 1
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			status := staticStatus(mirrorPod(tc.state, "node-1", "uid"), tc.state, "127.0.0.9", noon)
			if status.Phase != tc.phase || conditions(status)["Ready"] != tc.ready || !tc.check(status.ContainerStatuses[0]) {
				t.Errorf("phase %s, conditions %v, container %+v", status.Phase, conditions(status), status.ContainerStatuses[0])
			}
		})
	}
}

func TestAMirrorPodIsWhatNodeRestrictionAllows(t *testing.T) {
	pod := mirrorPod(static(func(*staticpod.State) {}), "node-1", "uid")
	owner := pod.OwnerReferences[0]
	if pod.Name != "etcd-node-1" || pod.Spec.NodeName != "node-1" || owner.Kind != "Node" || owner.UID != "uid" || !*owner.Controller || !isMirror(pod) {
		t.Errorf("%+v", pod)
	}
}

func TestAStaleMirrorPodGoesFirst(t *testing.T) {
	state := static(func(*staticpod.State) {})
	current, stale, leaving := mirrorPod(state, "n", "u"), mirrorPod(state, "n", "u"), mirrorPod(state, "n", "u")
	stale.Annotations[corev1.MirrorPodAnnotationKey] = "h0"
	leaving.DeletionTimestamp = &metav1.Time{Time: noon}
	cases := map[string]struct {
		state  *staticpod.State
		mirror *corev1.Pod
		want   mirrorAction
	}{
		"none yet":              {&state, nil, mirrorCreate},
		"as it should be":       {&state, current, mirrorKeep},
		"of a former manifest":  {&state, stale, mirrorDelete},
		"somebody deleted it":   {&state, leaving, mirrorDelete},
		"its manifest is gone":  {nil, current, mirrorDelete},
		"nothing on both sides": {nil, nil, mirrorKeep},
	}
	for name, tc := range cases {
		if got := planMirror(tc.state, tc.mirror); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}

func TestTheTailOfALogIsItsLastLines(t *testing.T) {
	for lines, want := range map[int]string{0: "", 1: "c\n", 2: "b\nc\n", 9: "a\nb\nc\n"} {
		if got := tail("a\nb\nc\n", lines); got != want {
			t.Errorf("%d lines: %q, want %q", lines, got, want)
		}
	}
	if got := tail("a\nb", 1); got != "b" {
		t.Errorf("without a last newline: %q", got)
	}
}
