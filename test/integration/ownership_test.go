package integration

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// A reference is soon mistyped, and a copied manifest names the objects of the original.
func TestWhatBelongsToAnotherIsNeitherTakenOverNorDeleted(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	cluster := newFooCluster(t, namespace, "prod")
	machine := newFooMachine(namespace, "prod", "original")
	config, vm := foo(namespace, "FooConfig", "original", nil), foo(namespace, "FooMachine", "original", map[string]any{"providerID": "foo://original"})
	create(t, machine, config, vm)
	report(t, config, map[string]any{"dataSecretName": "original", "initialization": map[string]any{"dataSecretCreated": true}})
	report(t, vm, map[string]any{"initialization": map[string]any{"provisioned": true}})
	startOperator(t, namespace, "core")
	wantPhase(t, machine, clusterv1.MachinePhaseProvisioned)
	eventually(t, func() string {
		if get(t, cluster).Status.Phase != string(clusterv1.ClusterPhaseProvisioned) {
			return "the Cluster is " + cluster.Status.Phase
		}
		return ""
	})

	copied := newFooMachine(namespace, "prod", "copy")
	copied.Spec.Bootstrap.ConfigRef.Name, copied.Spec.InfrastructureRef.Name = "original", "original"
	copiedCluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "copy"}, Spec: cluster.Spec}
	copiedCluster.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{}
	create(t, copied, copiedCluster)
	const next = "refer to an object of your own"
	wantCondition(t, copied, clusterv1.MachineInfrastructureReadyCondition, "False", "NotReady", `is controlled by Machine "original"`, next)
	wantCondition(t, copied, clusterv1.MachineBootstrapConfigReadyCondition, "False", "NotReady", `is controlled by Machine "original"`, next)
	wantCondition(t, copiedCluster, clusterv1.ClusterInfrastructureReadyCondition, "False", "NotReady", `is controlled by Cluster "prod"`, next)
	wantCondition(t, copiedCluster, clusterv1.ClusterControlPlaneAvailableCondition, "False", "NotAvailable", `is controlled by Cluster "prod"`, next)
	if copied.Spec.ProviderID != "" || copied.Spec.Bootstrap.DataSecretName != nil {
		t.Errorf("the copy took over %q and %v", copied.Spec.ProviderID, copied.Spec.Bootstrap.DataSecretName)
	}
	if copiedCluster.Spec.ControlPlaneEndpoint.IsValid() {
		t.Errorf("the copy took over the endpoint %s", copiedCluster.Spec.ControlPlaneEndpoint.String())
	}

	if err := admin.Delete(t.Context(), copied); err != nil {
		t.Fatal(err)
	}
	wantGone(t, copied)
	if err := admin.Delete(t.Context(), copiedCluster); err != nil {
		t.Fatal(err)
	}
	wantGone(t, copiedCluster)
	if get(t, vm).GetDeletionTimestamp() != nil || get(t, config).GetDeletionTimestamp() != nil {
		t.Error("the copies took objects of the originals along")
	}
	if infrastructure := get(t, foo(namespace, "FooCluster", "prod", nil)); infrastructure.GetDeletionTimestamp() != nil {
		t.Error("the copy took the infrastructure of the original along")
	}
}
