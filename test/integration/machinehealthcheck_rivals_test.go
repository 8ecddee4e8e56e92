package integration

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestOfTwoChecksOfAMachineTheOlderDecidesAndTheNewerSaysSo(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	newFooCluster(t, namespace, "prod")
	deployment := newFooDeployment(t, namespace, "prod", 1)
	// The older one is content with a silent Node.
	older := newCheck(namespace, "prod", func(c *clusterv1.MachineHealthCheck) {
		c.Name = "a-first"
		c.Spec.Checks.UnhealthyNodeConditions[0].Status = corev1.ConditionFalse
	})
	newer := newCheck(namespace, "prod", func(c *clusterv1.MachineHealthCheck) { c.Name = "b-second" })
	create(t, deployment, older, newer)
	startOperator(t, namespace, "core")
	machine := &provideMachines(t, namespace, 1)[0]
	wantChecked(t, older, "1 1 1")
	wantChecked(t, newer, "0 0 0")

	setReady(t, nodeOf(machine), corev1.ConditionUnknown)
	wantCondition(t, machine, clusterv1.MachineNodeReadyCondition, "Unknown", "NodeReadyUnknown")
	wantCondition(t, newer, clusterv1.MachineHealthCheckRemediationAllowedCondition, "True", "RemediationAllowed",
		"left to the older MachineHealthCheck a-first", machine.Name)
	wantEvent(t, newer, "MachinesLeftToOthers", "a-first")
	wantCondition(t, machine, clusterv1.MachineHealthCheckSucceededCondition, "True", "HealthCheckSucceeded")

	// A hook holds the Machine, so that it can be looked at.
	update(t, machine, func() {
		metav1.SetMetaDataAnnotation(&machine.ObjectMeta, clusterv1.PreTerminateDeleteHookAnnotationPrefix+"/test", "")
	})
	if err := admin.Delete(t.Context(), older); err != nil {
		t.Fatal(err)
	}
	wantDeleting(t, machine)
	wantCondition(t, newer, clusterv1.MachineHealthCheckRemediationAllowedCondition, "True", "RemediationAllowed")
}
