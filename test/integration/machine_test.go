package integration

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/patch"
)

func wantPhase(t *testing.T, machine *clusterv1.Machine, want clusterv1.MachinePhase) {
	t.Helper()
	eventually(t, func() string {
		if have := get(t, machine).Status.GetTypedPhase(); have != want {
			return fmt.Sprintf("Machine %q is %s, want %s", machine.Name, have, want)
		}
		return ""
	})
}

func TestAMachineWhoseObjectsComeLaterGoesThroughItsPhases(t *testing.T) {
	namespace := newNamespace(t)
	newFooCluster(t, namespace, "prod")
	machine := newFooMachine(namespace, "prod", "late")
	machine.Labels = map[string]string{"node-role.kubernetes.io/worker": "", "team": "a"}
	create(t, machine)
	startOperator(t, namespace, "core")

	wantCondition(t, machine, clusterv1.MachineInfrastructureReadyCondition, "False", "ObjectDoesNotExist", `FooMachine "late" does not exist`, "spec.infrastructureRef")
	wantCondition(t, machine, clusterv1.MachineBootstrapConfigReadyCondition, "False", "ObjectDoesNotExist", `FooConfig "late" does not exist`, "spec.bootstrap.configRef")
	wantPhase(t, machine, clusterv1.MachinePhasePending)
	if machine.Spec.Version != "v1.37.2" || ptr.Deref(machine.Spec.Deletion.NodeDeletionTimeoutSeconds, 0) != 10 || machine.Labels[clusterv1.ClusterNameLabel] != "prod" {
		t.Errorf("defaults were not stored: %+v", machine.Spec)
	}

	config := foo(namespace, "FooConfig", "late", nil)
	create(t, config)
	report(t, config, map[string]any{"dataSecretName": "late", "initialization": map[string]any{"dataSecretCreated": true}})
	wantPhase(t, machine, clusterv1.MachinePhaseProvisioning)

	const uuid = "4201d7a3-1b2c-3d4e-5f60-718293a4b5c6"
	vm := foo(namespace, "FooMachine", "late", map[string]any{"providerID": "foo://" + uuid})
	create(t, vm)
	report(t, vm, map[string]any{
		"initialization": map[string]any{"provisioned": true},
		"addresses":      []any{map[string]any{"type": "InternalIP", "address": "10.0.0.9"}},
		"failureDomain":  "rack-1",
	})
	wantPhase(t, machine, clusterv1.MachinePhaseProvisioned)
	for _, obj := range []*unstructured.Unstructured{config, vm} {
		eventually(t, func() string {
			if owner := metav1.GetControllerOf(get(t, obj)); owner == nil || owner.UID != machine.UID {
				return fmt.Sprintf("%s is controlled by %+v", obj.GetKind(), owner)
			}
			return ""
		})
	}
	if machine.Status.FailureDomain != "rack-1" || len(machine.Status.Addresses) != 1 || machine.Spec.ProviderID != "foo://"+uuid {
		t.Errorf("not taken over: %+v", machine.Status)
	}

	// The kubelet reports the UUID as firmware does that swaps bytes, in upper case.
	node := newNode("late-"+namespace, "A3D70142-2C1B-4E3D-5F60-718293A4B5C6")
	createNode(t, node)
	wantPhase(t, machine, clusterv1.MachinePhaseRunning)
	wantCondition(t, machine, clusterv1.MachineNodeHealthyCondition, "True", "NodeHealthy", "No cloud provider has set spec.providerID")
	wantCondition(t, machine, clusterv1.MachineAvailableCondition, "True", "Available")
	eventually(t, func() string {
		get(t, node)
		_, role := node.Labels["node-role.kubernetes.io/worker"]
		_, team := node.Labels["team"]
		if !role || team || node.Annotations[clusterv1.MachineAnnotation] != "late" ||
			slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&clusterv1.NodeUninitializedTaint) }) {
			return fmt.Sprintf("the Node is not synced: %+v %+v", node.ObjectMeta, node.Spec.Taints)
		}
		return ""
	})

	// A change of the Node, and nothing else, is seen.
	node.Status.Conditions[0].Status, node.Status.Conditions[0].Message = corev1.ConditionFalse, "runtime is down"
	if err := admin.Status().Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	wantCondition(t, machine, clusterv1.MachineReadyCondition, "False", "NotReady", "NodeHealthy: Node.Ready: runtime is down")
}

func TestAKindThatIsInstalledLaterIsFound(t *testing.T) {
	namespace := newNamespace(t)
	newFooCluster(t, namespace, "prod")
	machine := newFooMachine(namespace, "prod", "future")
	machine.Spec.InfrastructureRef.Kind = "BarMachine"
	create(t, machine)
	startOperator(t, namespace, "core")
	wantCondition(t, machine, clusterv1.MachineInfrastructureReadyCondition, "False", "ObjectDoesNotExist", "install the provider")

	if err := installKinds(fooGroup, "BarMachine"); err != nil {
		t.Fatal(err)
	}
	create(t, foo(namespace, "BarMachine", "future", nil))
	wantCondition(t, machine, clusterv1.MachineInfrastructureReadyCondition, "False", "NotReady", "BarMachine status.initialization.provisioned is false")
}

func TestAKindThatTheOperatorMayNotReadIsToldAndHoldsUpNobody(t *testing.T) {
	if err := installKinds("secret.test", "SecretMachine"); err != nil {
		t.Fatal(err)
	}
	namespace := newNamespace(t)
	newFooCluster(t, namespace, "prod")
	var denied []*clusterv1.Machine
	for i := range 15 {
		machine := newFooMachine(namespace, "prod", fmt.Sprintf("denied-%d", i))
		machine.Spec.Bootstrap = clusterv1.Bootstrap{DataSecretName: ptr.To("userdata")}
		machine.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: "secret.test", Kind: "SecretMachine", Name: machine.Name}
		create(t, machine)
		denied = append(denied, machine)
	}
	startOperator(t, namespace, "core")
	for _, machine := range denied {
		wantCondition(t, machine, clusterv1.MachineInfrastructureReadyCondition, "Unknown", "InternalError", "SecretMachine cannot be listed", "aggregate-to-manager")
	}
	runningMachine(t, namespace, "prod", "allowed", nil)
}

// runningMachine creates a Machine with all its objects and a Node, and waits until it runs.
func runningMachine(t *testing.T, namespace, cluster, name string, change func(*clusterv1.Machine)) (machine *clusterv1.Machine, config, vm *unstructured.Unstructured, node *corev1.Node) {
	t.Helper()
	id := "foo://" + namespace + "/" + name
	config, vm = foo(namespace, "FooConfig", name, nil), foo(namespace, "FooMachine", name, map[string]any{"providerID": id})
	create(t, config, vm)
	report(t, config, map[string]any{"dataSecretName": name, "initialization": map[string]any{"dataSecretCreated": true}})
	report(t, vm, map[string]any{"initialization": map[string]any{"provisioned": true}})
	node = newNode(name+"-"+namespace, "")
	node.Spec.ProviderID = id
	createNode(t, node)
	machine = newFooMachine(namespace, cluster, name)
	if change != nil {
		change(machine)
	}
	create(t, machine)
	wantPhase(t, machine, clusterv1.MachinePhaseRunning)
	return machine, config, vm, node
}

// newPod creates a pod that runs on a Node, as far as the API server knows.
func newPod(t *testing.T, namespace, name, node string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": name}},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "none"}}},
	}
	create(t, pod)
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	if err := admin.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

// newBudget creates a disruption budget with the status that its controller would give it.
func newBudget(t *testing.T, namespace, name string, allowed int32) *policyv1.PodDisruptionBudget {
	t.Helper()
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: ptr.To(intstr.FromInt32(1)),
			Selector:     &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
		},
	}
	create(t, budget)
	setBudget(t, budget, allowed)
	return budget
}

func setBudget(t *testing.T, budget *policyv1.PodDisruptionBudget, allowed int32) {
	t.Helper()
	budget.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: budget.Generation, DisruptionsAllowed: allowed, CurrentHealthy: 1 + allowed, DesiredHealthy: 1, ExpectedPods: 1 + allowed}
	if err := admin.Status().Update(t.Context(), budget); err != nil {
		t.Fatal(err)
	}
}

// newAttachment creates a volume that is attached to a Node.
func newAttachment(t *testing.T, volume, node string) *storagev1.VolumeAttachment {
	t.Helper()
	attachment := &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: volume},
		Spec:       storagev1.VolumeAttachmentSpec{Attacher: "foo.test", NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume}},
	}
	create(t, attachment)
	attachment.Status.Attached = true
	if err := admin.Status().Update(t.Context(), attachment); err != nil {
		t.Fatal(err)
	}
	return attachment
}

// terminate does what a kubelet does to an evicted pod.
func terminate(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	eventually(t, func() string {
		if get(t, pod).DeletionTimestamp == nil {
			return fmt.Sprintf("pod %q was not evicted", pod.Name)
		}
		return ""
	})
	if err := admin.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
}

func TestADeletionGoesThroughItsStagesInOrder(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	newFooCluster(t, namespace, "prod")
	startOperator(t, namespace, "core")
	const preDrain, preTerminate = clusterv1.PreDrainDeleteHookAnnotationPrefix + "/test", clusterv1.PreTerminateDeleteHookAnnotationPrefix + "/test"
	machine, config, vm, node := runningMachine(t, namespace, "prod", "doomed", func(m *clusterv1.Machine) {
		m.Annotations = map[string]string{preDrain: "", preTerminate: ""}
	})
	guarded, free := newPod(t, namespace, "guarded", node.Name), newPod(t, namespace, "free", node.Name)
	budget := newBudget(t, namespace, "guarded", 0)

	if err := admin.Delete(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
	wantCondition(t, machine, clusterv1.MachineDeletingCondition, "True", "WaitingForPreDrainHook", preDrain)
	if get(t, node).Spec.Unschedulable {
		t.Error("the Node was cordoned before the hook was gone")
	}

	dropAnnotation(t, machine, preDrain)
	wantCondition(t, machine, clusterv1.MachineDeletingCondition, "True", "DrainingNode", namespace+"/guarded", "disruption budget guarded")
	terminate(t, free)
	if !get(t, node).Spec.Unschedulable {
		t.Error("the Node is drained and not cordoned")
	}
	if get(t, guarded).DeletionTimestamp != nil {
		t.Error("a pod was evicted against its disruption budget")
	}

	volume := newAttachment(t, "volume-"+namespace, node.Name)
	setBudget(t, budget, 1)
	terminate(t, guarded)
	wantCondition(t, machine, clusterv1.MachineDeletingCondition, "True", "WaitingForVolumeDetach", "volume-"+namespace)
	if err := admin.Delete(t.Context(), volume); err != nil {
		t.Fatal(err)
	}
	wantCondition(t, machine, clusterv1.MachineDeletingCondition, "True", "WaitingForPreTerminateHook", preTerminate)
	if get(t, vm).GetDeletionTimestamp() != nil {
		t.Error("the machine was destroyed before the hook was gone")
	}

	dropAnnotation(t, machine, preTerminate)
	wantDeleting(t, vm)
	wantCondition(t, machine, clusterv1.MachineDeletingCondition, "True", "WaitingForInfrastructureDeletion", `FooMachine "doomed"`)
	if get(t, config).GetDeletionTimestamp() != nil {
		t.Error("the bootstrap config was deleted before the machine was gone")
	}
	release(t, vm)
	wantDeleting(t, config)
	get(t, node)
	release(t, config)
	wantGone(t, node)
	wantGone(t, machine)
}

func dropAnnotation(t *testing.T, machine *clusterv1.Machine, key string) {
	t.Helper()
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"annotations":{%q:null}}}`, key))
	if err := admin.Patch(t.Context(), machine, patch); err != nil {
		t.Fatal(err)
	}
}

func TestADrainGivesUpAfterItsTimeout(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	newFooCluster(t, namespace, "prod")
	startOperator(t, namespace, "core")
	machine, _, vm, node := runningMachine(t, namespace, "prod", "stuck", func(m *clusterv1.Machine) {
		m.Spec.Deletion.NodeDrainTimeoutSeconds = ptr.To[int32](3)
	})
	pod := newPod(t, namespace, "guarded", node.Name)
	newBudget(t, namespace, "guarded", 0)
	if err := admin.Delete(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
	wantCondition(t, machine, clusterv1.MachineDeletingCondition, "True", "DrainingNode", namespace+"/guarded")
	wantDeleting(t, vm)
	if get(t, pod).DeletionTimestamp != nil {
		t.Error("the pod was evicted against its disruption budget")
	}
}

func TestAMachineOfAClusterThatGoesIsNotDrained(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	cluster := newFooCluster(t, namespace, "prod")
	startOperator(t, namespace, "core")
	machine, config, vm, node := runningMachine(t, namespace, "prod", "last", nil)
	newPod(t, namespace, "guarded", node.Name)
	newBudget(t, namespace, "guarded", 0)
	if err := admin.Delete(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	wantDeleting(t, vm)
	release(t, vm)
	wantDeleting(t, config)
	release(t, config)
	wantGone(t, machine)
	if get(t, node).Spec.Unschedulable {
		t.Error("the Node of a cluster that goes was drained")
	}
}

func TestAMachineThatRunsCausesNoWrites(t *testing.T) {
	namespace := newNamespace(t)
	newFooCluster(t, namespace, "prod")
	startOperator(t, namespace, "core")
	machine, config, vm, node := runningMachine(t, namespace, "prod", "calm", nil)
	wantCondition(t, machine, clusterv1.MachineAvailableCondition, "True", "Available")
	versions := func() map[string]string {
		out := map[string]string{}
		for _, obj := range []client.Object{machine, config, vm, node} {
			out[fmt.Sprintf("%T %s", obj, obj.GetObjectKind().GroupVersionKind().Kind)] = get(t, obj).GetResourceVersion()
		}
		return out
	}
	// A change of ours brings the controller to work, and the condition tells when it has been there.
	for _, value := range []string{"False", "True"} {
		gate := conditions.True("Licensed", "R", "")
		gate.Status = metav1.ConditionStatus(value)
		helper := patch.New(get(t, machine), admin)
		machine.Spec.ReadinessGates = []clusterv1.MachineReadinessGate{{ConditionType: "Licensed"}}
		conditions.Set(machine, gate)
		if err := helper.Patch(t.Context(), machine); err != nil {
			t.Fatal(err)
		}
		wantCondition(t, machine, clusterv1.MachineReadyCondition, value, map[string]string{"True": "Ready", "False": "NotReady"}[value])
	}
	wantCondition(t, machine, clusterv1.MachineAvailableCondition, "True", "Available")
	before := versions()

	// Another Machine goes all the way meanwhile; every event that reaches one reaches the other's controller too.
	other, _, _, _ := runningMachine(t, namespace, "prod", "busy", nil)
	wantCondition(t, other, clusterv1.MachineAvailableCondition, "True", "Available")
	if diff := cmp.Diff(before, versions()); diff != "" {
		t.Errorf("resource versions moved (-before +after):\n%s", diff)
	}
}

func TestARestartOfTheOperatorChangesNothingOfAMachineThatRuns(t *testing.T) {
	namespace := newNamespace(t)
	cluster := newFooCluster(t, namespace, "prod")
	stop := startOperator(t, namespace, "core")
	machine, _, _, node := runningMachine(t, namespace, "prod", "calm", nil)
	wantCondition(t, machine, clusterv1.MachineAvailableCondition, "True", "Available")
	wantCondition(t, cluster, clusterv1.ClusterRemoteConnectionProbeCondition, "True", "ProbeSucceeded")
	stop()
	before := []string{get(t, machine).ResourceVersion, get(t, node).ResourceVersion}
	probed := conditions.Get(get(t, cluster), clusterv1.ClusterRemoteConnectionProbeCondition).LastTransitionTime

	startOperator(t, namespace, "core")
	// The second operator is connected and at work when it has found another Node.
	runningMachine(t, namespace, "prod", "busy", nil)
	after := []string{get(t, machine).ResourceVersion, get(t, node).ResourceVersion}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("resource versions moved (-before +after):\n%s", diff)
	}
	if now := conditions.Get(get(t, cluster), clusterv1.ClusterRemoteConnectionProbeCondition).LastTransitionTime; !now.Equal(&probed) {
		t.Errorf("RemoteConnectionProbe flapped: since %s, before %s", now, probed)
	}
}
