package integration

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/lifecycle"
)

func TestARollingUpdateStaysWithinItsBoundsAndCanBeUndone(t *testing.T) {
	t.Parallel()
	deployment := rollingDeployment(t, 10)
	startOperator(t, deployment.Namespace, "core")
	outside := watchCrowd(t, deployment.Namespace)
	outside.gauge(t, 10)

	change(t, deployment, setVersion("v1.37.1"))
	eventually(t, func() string {
		condition := conditions.Get(get(t, deployment), clusterv1.MachineDeploymentRollingOutCondition)
		if condition.Status != metav1.ConditionTrue || !strings.Contains(condition.Message, "replicas are not up to date\n* Version v1.37.2, v1.37.1 required") {
			return fmt.Sprintf("RollingOut is %s: %s", condition.Status, condition.Message)
		}
		return ""
	})
	wantRolledOut(t, deployment)
	outside.want(t, 10, 13)
	wantSets(t, deployment, "1:0 2:10")

	runMachines(t, deployment.Namespace, "rollout", "undo", deployment.Name, "--wait", "--timeout", "1m")
	wantRolledOut(t, deployment)
	outside.want(t, 10, 13)
	wantSets(t, deployment, "2:0 3:10")
	for _, machine := range machines(t, deployment.Namespace) {
		if machine.Spec.Version != "v1.37.2" {
			t.Errorf("%s has version %s", machine.Name, machine.Spec.Version)
		}
	}
}

func TestAnOperatorThatDiesDuringARollingUpdateStaysWithinItsBounds(t *testing.T) {
	t.Parallel()
	const deaths = 20
	deployment := rollingDeployment(t, 10)
	stop := startOperator(t, deployment.Namespace, "core")
	outside := watchCrowd(t, deployment.Namespace)
	outside.gauge(t, 10)

	rollouts := 0
	for range deaths {
		if rolledOut(t, deployment) == "" {
			rollouts++
			change(t, deployment, setVersion(fmt.Sprintf("v1.37.%d", 10+rollouts)))
		}
		until := outside.count() + rand.IntN(25)
		eventually(t, func() string {
			if problem := rolledOut(t, deployment); problem != "" && outside.count() < until {
				return problem
			}
			return ""
		})
		stop()
		stop = startOperator(t, deployment.Namespace, "core")
	}
	wantRolledOut(t, deployment)
	outside.want(t, 10, 13)

	have := map[string]bool{}
	for _, machine := range machines(t, deployment.Namespace) {
		have[machine.Name] = true
	}
	vms := &unstructured.UnstructuredList{}
	vms.SetGroupVersionKind(foo("", "FooMachineList", "", nil).GroupVersionKind())
	eventually(t, func() string {
		if err := admin.List(t.Context(), vms, client.InNamespace(deployment.Namespace)); err != nil {
			t.Fatal(err)
		}
		for _, vm := range vms.Items {
			if !have[vm.GetName()] {
				return vm.GetName() + " has no Machine"
			}
		}
		return ""
	})
	if len(have) != 10 || len(vms.Items) != 10 {
		t.Errorf("%d Machines, %d FooMachines, want 10 of each", len(have), len(vms.Items))
	}
	t.Logf("%d rollouts survived %d deaths", rollouts, deaths)
}

func TestAPausedRolloutIsScaledAndResumed(t *testing.T) {
	t.Parallel()
	deployment := rollingDeployment(t, 2)
	startOperator(t, deployment.Namespace, "core")
	wantRolledOut(t, deployment)

	runMachines(t, deployment.Namespace, "rollout", "pause", deployment.Name)
	change(t, deployment, func(d *clusterv1.MachineDeployment) {
		d.Spec.Template.Spec.Version = "v1.37.1"
		d.Spec.Replicas = ptr.To[int32](4)
	})
	wantCondition(t, deployment, clusterv1.MachineDeploymentRollingOutCondition, "True", "RollingOut", "4 replicas are not up to date", "Paused: spec.paused is true")
	wantSets(t, deployment, "1:4")

	runMachines(t, deployment.Namespace, "rollout", "resume", deployment.Name, "--wait", "--timeout", "1m")
	wantSets(t, deployment, "1:0 2:4")
	wantRolledOut(t, deployment)
}

func TestOnDeleteReplacesWhatSomebodyDeletes(t *testing.T) {
	deployment := rollingDeployment(t, 3)
	change(t, deployment, func(d *clusterv1.MachineDeployment) {
		d.Spec.Rollout.Strategy = clusterv1.MachineDeploymentRolloutStrategy{Type: clusterv1.OnDeleteMachineDeploymentStrategyType}
	})
	startOperator(t, deployment.Namespace, "core")
	wantRolledOut(t, deployment)

	change(t, deployment, setVersion("v1.37.1"))
	wantCondition(t, deployment, clusterv1.MachineDeploymentRollingOutCondition, "True", "RollingOut", "3 replicas", "replaced when somebody deletes it")
	wantSets(t, deployment, "1:3 2:0")
	for left := 2; left >= 0; left-- {
		for _, machine := range machines(t, deployment.Namespace) {
			if machine.Spec.Version == "v1.37.2" {
				if err := admin.Delete(t.Context(), &machine); err != nil {
					t.Fatal(err)
				}
				break
			}
		}
		wantSets(t, deployment, fmt.Sprintf("1:%d 2:%d", left, 3-left))
	}
	wantRolledOut(t, deployment)
}

func TestATemplateEditedInPlaceIsToldUntilARestart(t *testing.T) {
	deployment := rollingDeployment(t, 2)
	startOperator(t, deployment.Namespace, "core")
	wantRolledOut(t, deployment)
	wantCondition(t, deployment, lifecycle.TemplateContentChangedCondition, "False", "ContentUnchanged")

	edit := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"template":{"spec":{"memoryMiB":8192}}}}`))
	if err := admin.Patch(t.Context(), foo(deployment.Namespace, "FooMachineTemplate", "prod", nil), edit); err != nil {
		t.Fatal(err)
	}
	wantCondition(t, deployment, lifecycle.TemplateContentChangedCondition, "True", "ContentChanged",
		"FooMachineTemplate prod was edited after 2 of 2 Machines were made from it")
	set := wantSets(t, deployment, "1:2")[0]
	wantEvent(t, &set, "ContentChanged", "FooMachineTemplate prod")

	runMachines(t, deployment.Namespace, "rollout", "restart", deployment.Name, "--wait", "--timeout", "1m")
	wantSets(t, deployment, "1:0 2:2")
	wantRolledOut(t, deployment)
	wantCondition(t, deployment, lifecycle.TemplateContentChangedCondition, "False", "ContentUnchanged")
	// The last of the old ones may still be on its way out.
	eventually(t, func() string {
		if n := len(machines(t, deployment.Namespace)); n != 2 {
			return fmt.Sprintf("%d Machines; want 2", n)
		}
		return ""
	})
	for _, machine := range machines(t, deployment.Namespace) {
		vm := get(t, foo(machine.Namespace, "FooMachine", machine.Name, nil))
		if memory, _, _ := unstructured.NestedInt64(vm.Object, "spec", "memoryMiB"); memory != 8192 {
			t.Errorf("%s has %d MiB", vm.GetName(), memory)
		}
	}
}

func TestWhatNeedsNoRolloutReachesTheMachines(t *testing.T) {
	deployment := rollingDeployment(t, 2)
	startOperator(t, deployment.Namespace, "core")
	wantRolledOut(t, deployment)
	before := machines(t, deployment.Namespace)

	change(t, deployment, func(d *clusterv1.MachineDeployment) {
		d.Spec.Template.Labels["team"] = "b"
		delete(d.Spec.Template.Labels, "pool")
		d.Spec.Template.Annotations = map[string]string{"note": "x"}
		d.Spec.Template.Spec.Deletion.NodeDrainTimeoutSeconds = ptr.To[int32](77)
		d.Spec.Template.Spec.Taints = []clusterv1.MachineTaint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule, Propagation: clusterv1.MachineTaintPropagationAlways}}
	})
	for i := range before {
		eventually(t, func() string {
			machine := get(t, &before[i])
			vm := get(t, foo(machine.Namespace, "FooMachine", machine.Name, nil))
			for _, obj := range []client.Object{machine, vm} {
				_, stale := obj.GetLabels()["pool"]
				if obj.GetLabels()["team"] != "b" || stale || obj.GetAnnotations()["note"] != "x" {
					return fmt.Sprintf("%T has labels %v and annotations %v", obj, obj.GetLabels(), obj.GetAnnotations())
				}
			}
			if ptr.Deref(machine.Spec.Deletion.NodeDrainTimeoutSeconds, 0) != 77 || len(machine.Spec.Taints) != 1 {
				return fmt.Sprintf("spec is %+v", machine.Spec)
			}
			return ""
		})
	}
	wantRolledOut(t, deployment)
	wantSets(t, deployment, "1:2")
}
