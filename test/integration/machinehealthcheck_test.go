package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/conditions"
)

// newCheck returns a check of the Machines of pool "a" that have been silent for a second.
func newCheck(namespace, cluster string, change ...func(*clusterv1.MachineHealthCheck)) *clusterv1.MachineHealthCheck {
	check := &clusterv1.MachineHealthCheck{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pool-a"},
		Spec: clusterv1.MachineHealthCheckSpec{
			ClusterName: cluster,
			Selector:    metav1.LabelSelector{MatchLabels: map[string]string{"pool": "a"}},
			Checks: clusterv1.MachineHealthCheckChecks{UnhealthyNodeConditions: []clusterv1.UnhealthyNodeCondition{
				{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, TimeoutSeconds: ptr.To[int32](1)},
			}},
		},
	}
	for _, f := range change {
		f(check)
	}
	return check
}

func inPoolA(machine *clusterv1.Machine) {
	metav1.SetMetaDataLabel(&machine.ObjectMeta, "pool", "a")
}

// setReady reports the condition Ready of a Node, as its kubelet does, or for a silent one the node controller.
func setReady(t *testing.T, node *corev1.Node, ready corev1.ConditionStatus) {
	t.Helper()
	status(t, node, func() {
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, Reason: "Test", LastTransitionTime: metav1.Now()}}
	})
}

// wantChecked waits for the counters of a check: "expected healthy remaining".
func wantChecked(t *testing.T, check *clusterv1.MachineHealthCheck, want string) {
	t.Helper()
	eventually(t, func() string {
		status := get(t, check).Status
		have := fmt.Sprint(ptr.Deref(status.ExpectedMachines, -1), ptr.Deref(status.CurrentHealthy, -1), ptr.Deref(status.RemediationsAllowed, -1))
		if have != want {
			return fmt.Sprintf("expected, healthy and allowed are %s, want %s: %+v", have, want, status.Conditions)
		}
		return ""
	})
}

// wantEvent waits for an event about an object.
func wantEvent(t *testing.T, obj client.Object, reason, part string) {
	t.Helper()
	eventually(t, func() string {
		list := &eventsv1.EventList{}
		if err := admin.List(t.Context(), list, client.InNamespace(obj.GetNamespace())); err != nil {
			t.Fatal(err)
		}
		for _, event := range list.Items {
			if event.Regarding.UID == obj.GetUID() && event.Reason == reason && strings.Contains(event.Note, part) {
				return ""
			}
		}
		return fmt.Sprintf("no event %s about %s that says %q", reason, obj.GetName(), part)
	})
}

// newFooDeployment returns a deployment of Machines in pool "a" that boot from a Secret of the user's.
func newFooDeployment(t *testing.T, namespace, cluster string, replicas int32) *clusterv1.MachineDeployment {
	t.Helper()
	create(t, foo(namespace, "FooMachineTemplate", cluster, map[string]any{"template": map[string]any{"spec": map[string]any{}}}))
	deployment := newDeployment(namespace, cluster, "workers", &replicas)
	deployment.Spec.Template.Labels = map[string]string{"pool": "a"}
	deployment.Spec.Template.Spec.Bootstrap = clusterv1.Bootstrap{DataSecretName: ptr.To("userdata")}
	deployment.Spec.Template.Spec.InfrastructureRef = fooRef("FooMachineTemplate", cluster)
	return deployment
}

// provideMachines plays the provider of all Machines until so many of them run, and returns these.
func provideMachines(t *testing.T, namespace string, count int) []clusterv1.Machine {
	t.Helper()
	var running []clusterv1.Machine
	eventually(t, func() string {
		running = nil
		for _, machine := range machines(t, namespace) {
			if machine.Status.GetTypedPhase() == clusterv1.MachinePhaseRunning {
				running = append(running, machine)
				continue
			}
			provide(t, &machine)
		}
		if len(running) != count {
			return fmt.Sprintf("%d Machines run, want %d", len(running), count)
		}
		return ""
	})
	return running
}

// provide reports the infrastructure of a Machine as provisioned and registers its Node, once.
func provide(t *testing.T, machine *clusterv1.Machine) {
	t.Helper()
	vm := foo(machine.Namespace, "FooMachine", machine.Name, nil)
	if err := admin.Get(t.Context(), client.ObjectKeyFromObject(vm), vm); err != nil || vm.Object["status"] != nil || vm.GetDeletionTimestamp() != nil {
		return
	}
	id := "foo://" + machine.Namespace + "/" + machine.Name
	if err := unstructured.SetNestedField(vm.Object, id, "spec", "providerID"); err != nil {
		t.Fatal(err)
	}
	if err := admin.Update(t.Context(), vm); err != nil {
		return // The operator wrote at the same moment; the caller tries again.
	}
	node := newNode(machine.Name+"-"+machine.Namespace, "")
	node.Spec.ProviderID = id
	createNode(t, node)
	report(t, vm, map[string]any{"initialization": map[string]any{"provisioned": true}})
}

func nodeOf(machine *clusterv1.Machine) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: machine.Name + "-" + machine.Namespace}}
}

func TestAMachineWhoseNodeFallsSilentIsReplaced(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	cluster := newFooCluster(t, namespace, "prod")
	deployment := newFooDeployment(t, namespace, "prod", 2)
	check := newCheck(namespace, "prod")
	create(t, deployment, check)
	startOperator(t, namespace, "core")
	before := provideMachines(t, namespace, 2)
	wantChecked(t, check, "2 2 2")
	wantCondition(t, check, clusterv1.MachineHealthCheckRemediationAllowedCondition, "True", "RemediationAllowed")
	if spec := check.Spec; ptr.Deref(spec.Checks.NodeStartupTimeoutSeconds, -1) != 600 || spec.Remediation.TriggerIf.UnhealthyLessThanOrEqualTo.String() != "100%" ||
		check.Labels[clusterv1.ClusterNameLabel] != "prod" || !isOwnedBy(check, cluster) || metav1.GetControllerOf(check) != nil {
		t.Errorf("defaults were not stored: %+v %+v", check.ObjectMeta, spec)
	}

	// A hook holds the Machine, so that there is time to look at it.
	const hook = clusterv1.PreTerminateDeleteHookAnnotationPrefix + "/test"
	sick := &before[0]
	update(t, sick, func() { metav1.SetMetaDataAnnotation(&sick.ObjectMeta, hook, "") })
	setReady(t, nodeOf(sick), corev1.ConditionUnknown)
	wantDeleting(t, sick)
	wantCondition(t, sick, clusterv1.MachineHealthCheckSucceededCondition, "False", "UnhealthyNode", "Condition Ready of Node "+nodeOf(sick).Name+" is Unknown since", "1s")
	wantCondition(t, sick, clusterv1.MachineOwnerRemediatedCondition, "False", "MachineDeleting")
	wantCondition(t, deployment, clusterv1.MachineDeploymentRemediatingCondition, "True", "Remediating", sick.Name)
	wantEvent(t, sick, "MachineMarkedUnhealthy", "is Unknown since")
	// It counts until it is gone: no more than were allowed are remediated at a time.
	wantChecked(t, check, "2 1 1")

	dropAnnotation(t, sick, hook)
	eventually(t, func() string {
		// The one that takes its place takes its name too.
		if slices.ContainsFunc(machines(t, namespace), func(m clusterv1.Machine) bool { return m.UID == sick.UID }) {
			return "the silent Machine is still there"
		}
		return ""
	})
	after := provideMachines(t, namespace, 2)
	if !slices.ContainsFunc(after, func(m clusterv1.Machine) bool { return m.UID == before[1].UID }) {
		t.Error("the Machine that was well was replaced too")
	}
	wantChecked(t, check, "2 2 2")
	wantCondition(t, deployment, clusterv1.MachineDeploymentRemediatingCondition, "False", "NotRemediating")
}

func TestWithTooManyUnhealthyMachinesNoneIsRemediatedAndTheCheckSaysSo(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	newFooCluster(t, namespace, "prod")
	startOperator(t, namespace, "core")
	var all []*clusterv1.Machine
	var nodes []*corev1.Node
	for _, name := range []string{"one", "two", "three"} {
		machine, _, _, node := runningMachine(t, namespace, "prod", name, inPoolA)
		all, nodes = append(all, machine), append(nodes, node)
	}
	check := newCheck(namespace, "prod", func(check *clusterv1.MachineHealthCheck) {
		check.Spec.Remediation.TriggerIf.UnhealthyLessThanOrEqualTo = ptr.To(intstr.FromString("40%"))
		// Longer than it takes to report both.
		check.Spec.Checks.UnhealthyNodeConditions[0].TimeoutSeconds = ptr.To[int32](5)
	})
	create(t, check)
	wantChecked(t, check, "3 3 1")

	for _, node := range nodes[:2] {
		setReady(t, node, corev1.ConditionUnknown)
	}
	for _, machine := range all[:2] {
		wantCondition(t, machine, clusterv1.MachineHealthCheckSucceededCondition, "False", "UnhealthyNode")
		if c := conditions.Get(machine, clusterv1.MachineOwnerRemediatedCondition); c != nil {
			t.Errorf("Machine %s is remediated: %+v", machine.Name, c)
		}
	}
	wantCondition(t, check, clusterv1.MachineHealthCheckRemediationAllowedCondition, "False", "TooManyUnhealthy",
		"2 of 3 Machines are not healthy (one, two)", "40%, which is 1")
	wantEvent(t, check, "RemediationRestricted", "2 of 3")
	wantChecked(t, check, "3 1 0")
	if diff := cmp.Diff([]string{"one", "three", "two"}, check.Status.Targets); diff != "" {
		t.Errorf("targets (-want +got):\n%s", diff)
	}

	// One gets well by itself: the other is one too few to be an outage.
	setReady(t, nodes[0], corev1.ConditionTrue)
	wantCondition(t, all[1], clusterv1.MachineOwnerRemediatedCondition, "False", "WaitingForRemediation")
	wantCondition(t, all[0], clusterv1.MachineHealthCheckSucceededCondition, "True", "HealthCheckSucceeded")
	wantCondition(t, check, clusterv1.MachineHealthCheckRemediationAllowedCondition, "True", "RemediationAllowed")

	// What no owner has begun is taken back when it is not needed any more.
	setReady(t, nodes[1], corev1.ConditionTrue)
	wantCondition(t, all[1], clusterv1.MachineHealthCheckSucceededCondition, "True", "HealthCheckSucceeded")
	if c := conditions.Get(all[1], clusterv1.MachineOwnerRemediatedCondition); c != nil {
		t.Errorf("a Machine that is well again is still to be remediated: %+v", c)
	}
}

func TestAnExternalRemediationIsRequestedAndTakenBack(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	newFooCluster(t, namespace, "prod")
	startOperator(t, namespace, "core")
	machine, _, _, node := runningMachine(t, namespace, "prod", "one", inPoolA)
	check := newCheck(namespace, "prod", func(check *clusterv1.MachineHealthCheck) {
		check.Spec.Remediation.TemplateRef = clusterv1.MachineHealthCheckRemediationTemplateReference{
			APIVersion: fooGroup + "/v1", Kind: "FooRemediationTemplate", Name: "reboot",
		}
	})
	create(t, check)
	wantChecked(t, check, "1 1 1")

	setReady(t, node, corev1.ConditionUnknown)
	wantCondition(t, machine, clusterv1.MachineExternallyRemediatedCondition, "False", "RemediationTemplateNotFound",
		`spec.remediation.templateRef of MachineHealthCheck "pool-a"`)
	if err := installKinds(fooGroup, "FooRemediation", "FooRemediationTemplate"); err != nil {
		t.Fatal(err)
	}
	wantCondition(t, machine, clusterv1.MachineExternallyRemediatedCondition, "False", "RemediationTemplateNotFound", `"reboot" not found`)
	create(t, foo(namespace, "FooRemediationTemplate", "reboot", map[string]any{"template": map[string]any{"spec": map[string]any{"strategy": "reboot"}}}))
	wantCondition(t, machine, clusterv1.MachineExternallyRemediatedCondition, "False", "WaitingForRemediation")
	request := get(t, foo(namespace, "FooRemediation", "one", nil))
	if strategy, _, _ := unstructured.NestedString(request.Object, "spec", "strategy"); strategy != "reboot" || !metav1.IsControlledBy(request, machine) {
		t.Errorf("the request has strategy %q and owners %+v", strategy, request.GetOwnerReferences())
	}
	if c := conditions.Get(machine, clusterv1.MachineOwnerRemediatedCondition); c != nil {
		t.Errorf("the owner is asked too: %+v", c)
	}

	setReady(t, node, corev1.ConditionTrue)
	wantGone(t, request)
	wantCondition(t, machine, clusterv1.MachineHealthCheckSucceededCondition, "True", "HealthCheckSucceeded")
	if c := conditions.Get(machine, clusterv1.MachineExternallyRemediatedCondition); c != nil {
		t.Errorf("a Machine that is well again still has %+v", c)
	}
}

func TestAnnotationsForceAndForbidRemediationAndADeletedNodeIsNoticed(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	newFooCluster(t, namespace, "prod")
	startOperator(t, namespace, "core")
	one, _, _, node := runningMachine(t, namespace, "prod", "one", inPoolA)
	two, _, _, _ := runningMachine(t, namespace, "prod", "two", inPoolA)
	check := newCheck(namespace, "prod")
	create(t, check)
	wantChecked(t, check, "2 2 2")

	update(t, two, func() { metav1.SetMetaDataAnnotation(&two.ObjectMeta, clusterv1.RemediateMachineAnnotation, "") })
	wantCondition(t, two, clusterv1.MachineHealthCheckSucceededCondition, "False", "HasRemediateAnnotation")
	wantCondition(t, two, clusterv1.MachineOwnerRemediatedCondition, "False", "WaitingForRemediation")
	update(t, two, func() { metav1.SetMetaDataAnnotation(&two.ObjectMeta, clusterv1.MachineSkipRemediationAnnotation, "") })
	wantChecked(t, check, "1 1 1")

	if err := admin.Delete(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	wantCondition(t, one, clusterv1.MachineHealthCheckSucceededCondition, "False", "NodeDeleted", node.Name)
}

func TestAFirstControlPlaneMachineThatDoesNotStartIsRemediatedOnTime(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	newFooCluster(t, namespace, "prod")
	report(t, get(t, foo(namespace, "FooControlPlane", "prod", nil)), map[string]any{"initialization": map[string]any{"controlPlaneInitialized": false}})
	machine := newFooMachine(namespace, "prod", "first")
	machine.Labels = map[string]string{"pool": "a", clusterv1.MachineControlPlaneLabel: ""}
	check := newCheck(namespace, "prod", func(check *clusterv1.MachineHealthCheck) {
		check.Spec.Checks.NodeStartupTimeoutSeconds = ptr.To[int32](3)
	})
	create(t, machine, check)
	startOperator(t, namespace, "core")
	// No event tells of the end of the timeout: the check looks by itself.
	wantCondition(t, machine, clusterv1.MachineHealthCheckSucceededCondition, "False", "NodeStartupTimeout", "for longer than 3s")
	if waited := time.Since(machine.CreationTimestamp.Time); waited < 3*time.Second {
		t.Errorf("remediated after %s", waited)
	}
}

func TestACheckOfMachinesThatAreWellCausesNoWrites(t *testing.T) {
	namespace := newNamespace(t)
	newFooCluster(t, namespace, "prod")
	startOperator(t, namespace, "core")
	machine, _, _, node := runningMachine(t, namespace, "prod", "calm", inPoolA)
	check := newCheck(namespace, "prod")
	create(t, check)
	wantChecked(t, check, "1 1 1")
	wantCondition(t, machine, clusterv1.MachineHealthCheckSucceededCondition, "True", "HealthCheckSucceeded")

	// A change that means nothing to the check brings it to work; so does all that another Machine goes through.
	update(t, machine, func() { metav1.SetMetaDataAnnotation(&machine.ObjectMeta, "touched", "") })
	setReady(t, node, corev1.ConditionTrue)
	other, _, _, _ := runningMachine(t, namespace, "prod", "busy", nil)
	wantCondition(t, other, clusterv1.MachineAvailableCondition, "True", "Available")
	versions := func() []string {
		return []string{get(t, check).ResourceVersion, get(t, machine).ResourceVersion}
	}
	before := versions()
	update(t, other, func() { inPoolA(other) })
	wantChecked(t, check, "2 2 2")
	after := versions()
	if before[1] != after[1] {
		t.Errorf("the Machine was written though nothing about it changed: %+v", machine)
	}
	settled := after[0]
	busy, _, _, _ := runningMachine(t, namespace, "prod", "busier", nil)
	wantCondition(t, busy, clusterv1.MachineAvailableCondition, "True", "Available")
	if have := versions()[0]; have != settled {
		t.Errorf("the check was written though nothing about it changed: %+v", check.Status)
	}
}
