package integration

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/patch"
)

func TestAClusterTakesOverWhatItsProviderReports(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	cluster := newFooCluster(t, namespace, "prod")
	startOperator(t, namespace, "core")
	wantCondition(t, cluster, clusterv1.ClusterControlPlaneInitializedCondition, "True", "Initialized")

	controlPlane := get(t, foo(namespace, "FooControlPlane", "prod", nil))
	report(t, controlPlane, map[string]any{
		"initialization": map[string]any{"controlPlaneInitialized": true},
		"replicas":       int64(1), "readyReplicas": int64(1), "availableReplicas": int64(1), "upToDateReplicas": int64(1),
		"conditions": []any{map[string]any{"type": "Available", "status": "True", "reason": "Available", "lastTransitionTime": "2026-11-30T21:00:00Z"}},
	})
	wantCondition(t, cluster, clusterv1.ClusterAvailableCondition, "True", "Available")
	wantCondition(t, cluster, clusterv1.ClusterRemoteConnectionProbeCondition, "True", "ProbeSucceeded")
	if cluster.Spec.ControlPlaneEndpoint.String() != "127.0.0.1:6443" || cluster.Status.Phase != string(clusterv1.ClusterPhaseProvisioned) {
		t.Errorf("endpoint %s, phase %s", cluster.Spec.ControlPlaneEndpoint, cluster.Status.Phase)
	}
	if have := cluster.Status.ControlPlane; have == nil || ptr.Deref(have.ReadyReplicas, 0) != 1 || len(have.Versions) != 1 || have.Versions[0].Version != "v1.37.2" {
		t.Errorf("control plane: %+v", have)
	}
	for _, kind := range []string{"FooCluster", "FooControlPlane"} {
		obj := get(t, foo(namespace, kind, "prod", nil))
		if owner := metav1.GetControllerOf(obj); owner == nil || owner.UID != cluster.UID || obj.GetLabels()[clusterv1.ClusterNameLabel] != "prod" {
			t.Errorf("%s is controlled by %+v, labels %v", kind, owner, obj.GetLabels())
		}
	}
}

func TestAMissingReferenceOfAClusterIsNamedAndHealsWithoutARestart(t *testing.T) {
	t.Parallel()
	installFoo(t)
	namespace := newNamespace(t)
	cluster := &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "prod"},
		Spec:       clusterv1.ClusterSpec{InfrastructureRef: fooRef("FooCluster", "missing"), ControlPlaneRef: fooRef("FooControlPlane", "missing")},
	}
	create(t, cluster)
	startOperator(t, namespace, "core")
	wantCondition(t, cluster, clusterv1.ClusterInfrastructureReadyCondition, "False", "ObjectDoesNotExist", `FooCluster "missing"`, "spec.infrastructureRef")
	wantCondition(t, cluster, clusterv1.ClusterControlPlaneAvailableCondition, "False", "ObjectDoesNotExist", `FooControlPlane "missing"`, "spec.controlPlaneRef")

	infrastructure := foo(namespace, "FooCluster", "missing", map[string]any{"controlPlaneEndpoint": map[string]any{"host": "10.0.0.1", "port": int64(6443)}})
	create(t, infrastructure)
	report(t, infrastructure, map[string]any{"initialization": map[string]any{"provisioned": true}})
	wantCondition(t, cluster, clusterv1.ClusterInfrastructureReadyCondition, "True", "Ready")
	eventually(t, func() string {
		if get(t, cluster); cluster.Status.Phase != string(clusterv1.ClusterPhaseProvisioned) {
			return "phase is " + cluster.Status.Phase
		}
		return ""
	})
}

func TestAClusterIsDeletedInOrder(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	cluster := newFooCluster(t, namespace, "prod")
	template := foo(namespace, "FooMachineTemplate", "prod", map[string]any{"template": map[string]any{"spec": map[string]any{"size": "small"}}})
	deployment := newDeployment(namespace, "prod", "workers", ptr.To[int32](2))
	deployment.Spec.Template.Spec.Bootstrap = clusterv1.Bootstrap{DataSecretName: ptr.To("userdata")}
	deployment.Spec.Template.Spec.InfrastructureRef = fooRef("FooMachineTemplate", "prod")
	supplied := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "prod-ca", Labels: map[string]string{clusterv1.ClusterNameLabel: "prod"}}}
	alone := newFooMachine(namespace, "prod", "alone")
	alone.Spec.Bootstrap = clusterv1.Bootstrap{DataSecretName: ptr.To("userdata")}
	aloneVM := foo(namespace, "FooMachine", "alone", nil)
	create(t, template, deployment, supplied, alone, aloneVM)
	startOperator(t, namespace, "core")

	eventually(t, func() string {
		have := machines(t, namespace)
		for _, machine := range have {
			if !conditions.IsFalse(&machine, clusterv1.MachineInfrastructureReadyCondition) || len(machine.Finalizers) == 0 {
				return fmt.Sprintf("Machine %q is not taken over yet", machine.Name)
			}
		}
		if len(have) != 3 {
			return fmt.Sprintf("%d Machines, want 3", len(have))
		}
		return ""
	})
	wantCondition(t, cluster, clusterv1.ClusterInfrastructureReadyCondition, "True", "Ready")
	infrastructure, controlPlane := foo(namespace, "FooCluster", "prod", nil), foo(namespace, "FooControlPlane", "prod", nil)

	if err := admin.Delete(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	// The deployment's machines go while the stand-alone one stays; the test's finalizer holds it.
	wantGone(t, deployment)
	wantDeleting(t, aloneVM)
	wantCondition(t, cluster, clusterv1.ClusterDeletingCondition, "True", "WaitingForWorkersDeletion", "Machine alone")
	if get(t, controlPlane).GetDeletionTimestamp() != nil {
		t.Error("the control plane was deleted before the workers were gone")
	}

	release(t, aloneVM)
	wantDeleting(t, controlPlane)
	wantCondition(t, cluster, clusterv1.ClusterDeletingCondition, "True", "WaitingForControlPlaneDeletion", `FooControlPlane "prod"`)
	if get(t, infrastructure).GetDeletionTimestamp() != nil {
		t.Error("the infrastructure was deleted before the control plane was gone")
	}

	release(t, controlPlane)
	wantDeleting(t, infrastructure)
	release(t, infrastructure)
	wantGone(t, cluster)
	wantGone(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "prod-kubeconfig"}})
	get(t, supplied)
}

// The fake client of unit tests answers a failed test of a JSON patch otherwise than an API server does.
func TestWritersOfDifferentConditionsOfOneMachineDoNotUndoEachOther(t *testing.T) {
	namespace := newNamespace(t)
	machine := newFooMachine(namespace, "prod", "shared")
	create(t, machine)

	ours, theirs := get(t, machine.DeepCopy()), get(t, machine.DeepCopy())
	ourPatch, theirPatch := patch.New(ours, admin), patch.New(theirs, admin)
	conditions.Set(theirs, conditions.True("Alpha", "Theirs", ""))
	conditions.Set(ours, conditions.True("Beta", "Ours", ""))
	for _, step := range []struct {
		helper *patch.Helper
		obj    client.Object
	}{{theirPatch, theirs}, {ourPatch, ours}} {
		if err := step.helper.Patch(t.Context(), step.obj); err != nil {
			t.Fatal(err)
		}
	}
	conditions.Set(theirs, conditions.False("Alpha", "Theirs", ""))
	if err := theirPatch.Patch(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	get(t, machine)
	if !conditions.IsFalse(machine, "Alpha") || !conditions.IsTrue(machine, "Beta") {
		t.Errorf("conditions: %+v", machine.Status.Conditions)
	}
}
