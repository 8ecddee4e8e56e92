package controlplane

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/millwright-dev/millwright/internal/conditions"
)

// states returns the status of each of our conditions on the first machine, by a short name.
func states(s *snapshot) map[string]metav1.ConditionStatus {
	out := map[string]metav1.ConditionStatus{}
	for _, c := range machineConditions(s, s.replicas[0]) {
		out[strings.TrimSuffix(strings.TrimSuffix(c.Type, "Healthy"), "Pod")] = c.Status
	}
	return out
}

func all(status metav1.ConditionStatus) map[string]metav1.ConditionStatus {
	return map[string]metav1.ConditionStatus{
		"NodeKubeadmLabelsAndTaintsSet": status, "APIServer": status, "ControllerManager": status, "Scheduler": status, "Etcd": status, "EtcdMember": status,
	}
}

func but(status metav1.ConditionStatus, types ...string) map[string]metav1.ConditionStatus {
	out := all(metav1.ConditionTrue)
	for _, conditionType := range types {
		out[conditionType] = status
	}
	return out
}

func TestMachineConditionsTellOnlyWhatIsKnown(t *testing.T) {
	tests := map[string]struct {
		s    *snapshot
		want map[string]metav1.ConditionStatus
	}{
		"all is well":                 {prod(3, 3), all("True")},
		"the Machine is let go":       {prod(3, 3, going(0, true), letGo(0)), all("False")},
		"our hook keeps the Machine":  {prod(3, 3, going(0, true)), all("True")},
		"one that is kept has failed": {prod(3, 3, going(0, true), podFails("etcd", 0)), but("False", "Etcd")},
		"the cluster does not answer": {prod(3, 3, disconnected), all("Unknown")},
		"there is no Node yet":        {prod(3, 3, machineLacksNode(0)), all("Unknown")},
		"the Node is gone":            {prod(3, 3, func(s *snapshot) { delete(s.workload.nodes, "cp-1") }), all("Unknown")},
		"the Node is unreachable": {prod(3, 3, func(s *snapshot) {
			s.workload.nodes["cp-1"].Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnreachable}}
		}), all("Unknown")},
		"the Node cannot be read":         {prod(3, 3, func(s *snapshot) { s.workload.failures["cp-1"] = errors.New("timeout") }), all("Unknown")},
		"kubeadm has not marked the Node": {prod(3, 3, func(s *snapshot) { s.workload.nodes["cp-1"].Labels = nil }), but("False", "NodeKubeadmLabelsAndTaintsSet")},
		"a static pod is not ready":       {prod(3, 3, podFails("kube-scheduler", 0)), but("False", "Scheduler")},
		"a static pod does not exist":     {prod(3, 3, func(s *snapshot) { delete(s.workload.pods, "kube-apiserver-cp-1") }), but("False", "APIServer")},
		"a static pod is of an earlier Node": {prod(3, 3, func(s *snapshot) {
			s.workload.nodes["cp-1"].UID = "new"
			s.workload.pods["etcd-cp-1"].OwnerReferences = []metav1.OwnerReference{{Kind: "Node", Name: "cp-1", UID: "old"}}
		}), but("False", "Etcd")},
		"a static pod cannot be read":          {prod(3, 3, func(s *snapshot) { s.workload.failures["etcd-cp-1"] = errors.New("timeout") }), but("Unknown", "Etcd")},
		"etcd does not answer":                 {prod(3, 3, func(s *snapshot) { s.workload.etcd = nil }), but("Unknown", "EtcdMember")},
		"etcd does not know the machine":       {prod(3, 3, func(s *snapshot) { dropMember(s, "cp-1") }), but("False", "EtcdMember")},
		"the member is a learner":              {prod(3, 3, func(s *snapshot) { s.workload.etcd.Members[0].Learner = true }), but("False", "EtcdMember")},
		"the member's disk is full":            {prod(3, 3, func(s *snapshot) { s.workload.etcd.Members[0].Alarms = []string{"NOSPACE"} }), but("False", "EtcdMember")},
		"another machine's trouble is its own": {prod(3, 3, podFails("etcd", 1)), all("True")},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, states(tc.s)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestExternalEtcdHasNoConditionsOfOurs(t *testing.T) {
	got := states(prod(1, 1, externalEtcd))
	want := all("True")
	delete(want, "Etcd")
	delete(want, "EtcdMember")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPodThatFailedIsToldFromOneThatStarts(t *testing.T) {
	const starting, failed = controlplanev1.KubeadmControlPlaneMachinePodProvisioningReason, controlplanev1.KubeadmControlPlaneMachinePodFailedReason
	container := func(state corev1.ContainerState) corev1.PodStatus {
		return corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{Name: "etcd", State: state}}}
	}
	tests := map[string]struct {
		status       corev1.PodStatus
		reason, told string
	}{
		"pending":              {corev1.PodStatus{Phase: corev1.PodPending}, starting, "not ready yet"},
		"container is created": {container(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}), starting, "not ready yet"},
		"image cannot be had":  {container(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}), failed, "ImagePullBackOff"},
		"container ended":      {container(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}), failed, "exit code 1"},
		"pod failed":           {corev1.PodStatus{Phase: corev1.PodFailed}, failed, "Failed"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			reason, message := whyNotReady(&corev1.Pod{Status: tc.status})
			if reason != tc.reason || !strings.Contains(message, tc.told) {
				t.Errorf("got %s: %s; want %s: %s", reason, message, tc.reason, tc.told)
			}
		})
	}
}

func TestHealthyControlPlaneIsLookedAtSeldom(t *testing.T) {
	// longAgo makes the trouble of the second machine old.
	longAgo := func(s *snapshot) {
		c := conditions.Unknown(controlplanev1.KubeadmControlPlaneMachineEtcdPodHealthyCondition, "x", "")
		c.LastTransitionTime = metav1.NewTime(noon.Add(-time.Hour))
		for _, r := range s.replicas {
			for _, gate := range s.gates() {
				old := c
				old.Type, old.Status = gate, "False"
				if gate != c.Type || r.machine.Name != "cp-2" {
					old.Status = "True"
				}
				conditions.Set(r.machine, old)
			}
		}
	}
	tests := map[string]struct {
		s    *snapshot
		want time.Duration
	}{
		"all is well":                             {prod(3, 3), watchHealthy},
		"something has just gone wrong":           {prod(3, 3, podFails("etcd", 1)), watchClosely},
		"something has long been wrong":           {prod(3, 3, longAgo, podFails("etcd", 1)), watchAgain},
		"kubeadm init is about to end":            {prod(1, 3, func(s *snapshot) { s.controlPlane.Status.Initialization.ControlPlaneInitialized = nil }), watchKubeadm},
		"a Node is an event":                      {prod(3, 3, machineLacksNode(2)), watchHealthy},
		"the connection is an event":              {prod(3, 3, disconnected), 0},
		"there is nothing to look at":             {prod(0, 3), 0},
		"a member is left over":                   {prod(3, 3, stranger(9, "cp-9")), watchAgain},
		"a Machine's deletion is watched anyway":  {prod(3, 3, going(0, false)), watchHealthy},
		"one that is kept by our hook has failed": {prod(3, 3, going(0, true), podFails("etcd", 0)), watchClosely},
		"one that is let go may fail":             {prod(3, 3, going(0, true), letGo(0), podFails("etcd", 0)), watchHealthy},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.s.now = time.Now()
			if strings.Contains(name, "long been") {
				tc.s.now = noon
			}
			if got := lookAgain(tc.s); got != tc.want {
				t.Errorf("lookAgain = %s, want %s", got, tc.want)
			}
		})
	}
}

func TestDoubtIsYoungOnlyForAWhile(t *testing.T) {
	var d doubts
	well, silent := prod(1, 1), prod(1, 1, func(s *snapshot) { s.workload.etcd, s.workload.etcdErr = nil, errors.New("election") })
	steps := []struct {
		s    *snapshot
		at   time.Duration
		want bool
	}{
		{well, 0, false}, {silent, time.Second, true}, {silent, 5 * time.Second, true}, {silent, 12 * time.Second, false},
		{well, 13 * time.Second, false}, {silent, 14 * time.Second, true}, {prod(1, 1, disconnected), 15 * time.Second, false},
	}
	for i, step := range steps {
		if got := d.young(step.s, noon.Add(step.at)); got != step.want {
			t.Errorf("step %d: young = %t, want %t", i, got, step.want)
		}
	}
}

func TestDoubtsOfAControlPlaneThatIsGoneAreForgotten(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := controlplanev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	r := &Reconciler{Client: fake.NewClientBuilder().WithScheme(scheme).Build(), Now: time.Now}
	s := prod(1, 1, func(s *snapshot) { s.workload.etcd, s.workload.etcdErr = nil, errors.New("election") })
	if !r.doubts.young(s, noon) {
		t.Fatal("there is no doubt to forget")
	}
	if _, err := r.Reconcile(context.Background(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(s.controlPlane)}); err != nil {
		t.Fatal(err)
	}
	if len(r.doubts.since) != 0 {
		t.Errorf("left are %v", r.doubts.since)
	}
}
