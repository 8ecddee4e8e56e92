package integration

import (
	"fmt"
	"maps"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/lifecycle"
)

func TestMachinesWaitForAControlPlaneThatIsBeingUpgraded(t *testing.T) {
	t.Parallel()
	deployment := rollingDeployment(t, 1)
	startOperator(t, deployment.Namespace, "core")
	wantRolledOut(t, deployment)

	controlPlane := foo(deployment.Namespace, "FooControlPlane", "prod", nil)
	upgrade := func(status string) {
		t.Helper()
		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"status":{"version":%q}}`, status))
		if err := admin.Status().Patch(t.Context(), controlPlane, patch); err != nil {
			t.Fatal(err)
		}
	}
	upgrade("v1.37.1")
	const problem = "FooControlPlane prod is being upgraded from v1.37.1 to v1.37.2 (check ControlPlaneIsStable)"
	wantCondition(t, deployment, clusterv1.MachineDeploymentScalingUpCondition, "False", "NotScalingUp", "Scaling up would be blocked:\n* "+problem)
	scale(t, deployment, 2)
	wantCondition(t, deployment, clusterv1.MachineDeploymentScalingUpCondition, "True", "ScalingUp", "Scaling up from 1 to 2 replicas is blocked:\n* "+problem)

	// Its end is seen without anything else that happens.
	upgrade("v1.37.2")
	wantRolledOut(t, deployment)

	upgrade("v1.37.1")
	wantCondition(t, deployment, clusterv1.MachineDeploymentScalingUpCondition, "False", "NotScalingUp", problem)
	change(t, deployment, func(d *clusterv1.MachineDeployment) {
		d.Annotations = map[string]string{clusterv1.MachineSetSkipPreflightChecksAnnotation: "ControlPlaneIsStable"}
		d.Spec.Replicas = ptr.To[int32](3)
	})
	wantRolledOut(t, deployment)
}

func TestMachinesAreSpreadOverFailureDomainsAndStayBalanced(t *testing.T) {
	t.Parallel()
	deployment := rollingDeployment(t, 6)
	change(t, deployment, func(d *clusterv1.MachineDeployment) {
		d.Annotations = map[string]string{lifecycle.SpreadFailureDomainsAnnotation: "true"}
	})
	infrastructure := get(t, foo(deployment.Namespace, "FooCluster", "prod", nil))
	report(t, infrastructure, map[string]any{
		"initialization": map[string]any{"provisioned": true},
		"failureDomains": []any{map[string]any{"name": "a"}, map[string]any{"name": "b"}, map[string]any{"name": "c"}},
	})
	wantDomains := func(want map[string]int) {
		t.Helper()
		eventually(t, func() string {
			have := map[string]int{}
			for _, machine := range machines(t, deployment.Namespace) {
				have[machine.Spec.FailureDomain]++
			}
			if !maps.Equal(have, want) {
				return fmt.Sprintf("Machines are in %v, want %v", have, want)
			}
			return ""
		})
	}
	startOperator(t, deployment.Namespace, "core")
	wantRolledOut(t, deployment)
	wantDomains(map[string]int{"a": 2, "b": 2, "c": 2})
	scale(t, deployment, 3)
	wantDomains(map[string]int{"a": 1, "b": 1, "c": 1})

	change(t, deployment, setVersion("v1.37.1"))
	wantRolledOut(t, deployment)
	wantDomains(map[string]int{"a": 1, "b": 1, "c": 1})
}

func TestANamingTemplateNamesMachinesAndTheirObjects(t *testing.T) {
	t.Parallel()
	deployment := rollingDeployment(t, 2)
	change(t, deployment, func(d *clusterv1.MachineDeployment) { d.Spec.MachineNaming.Template = "{{ .machineSet.name }}" })
	startOperator(t, deployment.Namespace, "core")
	wantCondition(t, deployment, clusterv1.MachineDeploymentScalingUpCondition, "True", "ScalingUp", "gives all Machines one name: add {{ .random }}")

	change(t, deployment, func(d *clusterv1.MachineDeployment) {
		d.Spec.MachineNaming.Template = "{{ .cluster.name }}-{{ .random }}-web"
	})
	wantRolledOut(t, deployment)
	for _, machine := range machines(t, deployment.Namespace) {
		if len(machine.Name) != len("prod-12345-web") || machine.Spec.InfrastructureRef.Name != machine.Name {
			t.Errorf("Machine %s has %s", machine.Name, machine.Spec.InfrastructureRef.Name)
		}
	}
}

func TestTheAutoscalerIsToldTheCapacityOfATemplate(t *testing.T) {
	deployment := rollingDeployment(t, 0)
	startOperator(t, deployment.Namespace, "core")
	template := get(t, foo(deployment.Namespace, "FooMachineTemplate", "prod", nil))
	report(t, template, map[string]any{"capacity": map[string]any{"cpu": int64(4), "memory": "8Gi"}})
	wantCapacity := func(cpu, memory string) {
		t.Helper()
		eventually(t, func() string {
			have := get(t, deployment).Annotations
			if have[lifecycle.CapacityPrefix+"cpu"] != cpu || have[lifecycle.CapacityPrefix+"memory"] != memory {
				return fmt.Sprintf("annotations are %v", have)
			}
			return ""
		})
	}
	wantCapacity("4", "8Gi")
	change(t, deployment, func(d *clusterv1.MachineDeployment) { d.Spec.Template.Spec.InfrastructureRef.Name = "nowhere" })
	wantCapacity("4", "8Gi")
	report(t, template, map[string]any{"capacity": map[string]any{"cpu": int64(2)}})
	change(t, deployment, func(d *clusterv1.MachineDeployment) { d.Spec.Template.Spec.InfrastructureRef.Name = "prod" })
	wantCapacity("2", "")
}
