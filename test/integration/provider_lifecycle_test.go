package integration

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestAProviderKnownOnlyByItsContractGoesThroughTheWholeLifecycle(t *testing.T) {
	t.Parallel()
	deployment := rollingDeployment(t, 2)
	namespace := deployment.Namespace
	create(t, newCheck(namespace, "prod"))
	startOperator(t, namespace, "core")
	wantRolledOut(t, deployment)
	uids := func() []types.UID {
		var out []types.UID
		for _, machine := range machines(t, namespace) {
			if machine.DeletionTimestamp == nil {
				out = append(out, machine.UID)
			}
		}
		return out
	}
	wantOthersThan := func(before ...types.UID) {
		t.Helper()
		eventually(t, func() string {
			if slices.ContainsFunc(uids(), func(uid types.UID) bool { return slices.Contains(before, uid) }) {
				return "a Machine of before is still there"
			}
			return rolledOut(t, deployment)
		})
	}

	// Rollout: each Machine is replaced.
	before := uids()
	change(t, deployment, setVersion("v1.37.1"))
	wantOthersThan(before...)

	// Drain: a Machine that goes takes its pods along, one that is deleted for its health too.
	drained := someMachine(t, namespace)
	pod := newPod(t, namespace, "web", nodeOf(drained).Name)
	if err := admin.Delete(t.Context(), drained); err != nil {
		t.Fatal(err)
	}
	wantCondition(t, drained, clusterv1.MachineDeletingCondition, "True", "DrainingNode", "/web: evicted")
	terminate(t, pod)
	wantOthersThan(drained.UID)

	// Health: a silent Node has its Machine replaced.
	sick := someMachine(t, namespace)
	setReady(t, nodeOf(sick), corev1.ConditionUnknown)
	wantOthersThan(sick.UID)

	// Deletion: nothing is left of the deployment, its machines or their Nodes.
	last := machines(t, namespace)
	if err := admin.Delete(t.Context(), deployment); err != nil {
		t.Fatal(err)
	}
	for i := range last {
		wantGone(t, foo(namespace, "FooMachine", last[i].Name, nil))
		wantGone(t, &last[i])
		wantGone(t, nodeOf(&last[i]))
	}
	wantGone(t, deployment)
}
