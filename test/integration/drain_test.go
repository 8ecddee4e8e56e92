package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// newDrainRule creates a rule for the pods with a label app.
func newDrainRule(t *testing.T, namespace, app string, drain clusterv1.MachineDrainRuleDrainConfig) *clusterv1.MachineDrainRule {
	t.Helper()
	rule := &clusterv1.MachineDrainRule{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: app},
		Spec: clusterv1.MachineDrainRuleSpec{
			Drain: drain,
			Pods: []clusterv1.MachineDrainRulePodSelector{{
				Selector:          &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
			}},
		},
	}
	create(t, rule)
	return rule
}

func TestADrainThatABudgetBlocksNamesPodAndBudgetAndGoesOnAfterItsTimeout(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	newFooCluster(t, namespace, "prod")
	startOperator(t, namespace, "core")
	machine, _, vm, node := runningMachine(t, namespace, "prod", "held", nil)
	pod := newPod(t, namespace, "guarded", node.Name)
	newBudget(t, namespace, "guarded", 0)
	if err := admin.Delete(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
	wantCondition(t, machine, clusterv1.MachineDeletingCondition, "True", "DrainingNode",
		"Pod "+namespace+"/guarded cannot be evicted", "disruption budget guarded needs 1")
	if get(t, vm).GetDeletionTimestamp() != nil {
		t.Fatal("the machine was destroyed while its drain was blocked")
	}

	// The timeout counts from the start of the drain, also where it is set later.
	patch := `{"spec":{"deletion":{"nodeDrainTimeoutSeconds":1}}}`
	mergePatch(t, machine, patch)
	wantDeleting(t, vm)
	if get(t, pod).DeletionTimestamp != nil {
		t.Error("the pod was evicted against its disruption budget")
	}
}

func TestADrainFollowsTheRulesOfItsNamespace(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	newFooCluster(t, namespace, "prod")
	startOperator(t, namespace, "core")
	newDrainRule(t, namespace, "agent", clusterv1.MachineDrainRuleDrainConfig{Behavior: clusterv1.MachineDrainRuleDrainBehaviorSkip})
	newDrainRule(t, namespace, "job", clusterv1.MachineDrainRuleDrainConfig{Behavior: clusterv1.MachineDrainRuleDrainBehaviorWaitCompleted})
	newDrainRule(t, namespace, "db", clusterv1.MachineDrainRuleDrainConfig{Behavior: clusterv1.MachineDrainRuleDrainBehaviorDrain, Order: ptr.To[int32](10)})
	machine, _, vm, node := runningMachine(t, namespace, "prod", "ruled", nil)
	agent, job := newPod(t, namespace, "agent", node.Name), newPod(t, namespace, "job", node.Name)
	db, web := newPod(t, namespace, "db", node.Name), newPod(t, namespace, "web", node.Name)
	if err := admin.Delete(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
	wantCondition(t, machine, clusterv1.MachineDeletingCondition, "True", "DrainingNode",
		`/job: not evicted but waited for until completed, as MachineDrainRule "job" asks`,
		"/web: evicted, not yet terminated", "/db: evicted when the pods of a lower order are gone")
	terminate(t, web)
	// The job is of order 0 too.
	wantCondition(t, machine, clusterv1.MachineDeletingCondition, "True", "DrainingNode", "/job: not evicted", "/db: evicted when")
	for _, pod := range []*corev1.Pod{agent, job, db} {
		if get(t, pod).DeletionTimestamp != nil {
			t.Errorf("pod %q was evicted", pod.Name)
		}
	}
	job.Status.Phase = corev1.PodSucceeded
	if err := admin.Status().Update(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	terminate(t, db)
	wantDeleting(t, vm)
	if get(t, agent).DeletionTimestamp != nil {
		t.Error("a pod was evicted that a rule skips")
	}
}

func TestARuleThatIsCorrectedFreesTheDrainItHeldUp(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	newFooCluster(t, namespace, "prod")
	startOperator(t, namespace, "core")
	rule := newDrainRule(t, namespace, "typo", clusterv1.MachineDrainRuleDrainConfig{Behavior: clusterv1.MachineDrainRuleDrainBehaviorSkip})
	mergePatch(t, rule, `{"spec":{"pods":[{"selector":{"matchExpressions":[{"key":"app","operator":"Near"}]}}]}}`)
	machine, _, vm, node := runningMachine(t, namespace, "prod", "waits", nil)
	if err := admin.Delete(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
	wantCondition(t, machine, clusterv1.MachineDeletingCondition, "True", "DrainingNode", `MachineDrainRule "typo": spec.pods[0].selector is not a selector`)
	if get(t, node).Spec.Unschedulable || get(t, vm).GetDeletionTimestamp() != nil {
		t.Error("the deletion went on without knowing the rules")
	}
	if err := admin.Delete(t.Context(), rule); err != nil {
		t.Fatal(err)
	}
	wantDeleting(t, vm)
}

func TestPodsOfANodeWhoseKubeletIsSilentDoNotHoldUpTheDrain(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	newFooCluster(t, namespace, "prod")
	startOperator(t, namespace, "core")
	machine, _, vm, node := runningMachine(t, namespace, "prod", "silent", nil)
	pod := newPod(t, namespace, "web", node.Name)
	get(t, node)
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: metav1.NewTime(time.Now())}}
	if err := admin.Status().Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	wantCondition(t, machine, clusterv1.MachineNodeReadyCondition, "Unknown", "NodeReadyUnknown")
	if err := admin.Delete(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
	// Nobody terminates the pod, and the drain goes on all the same.
	wantDeleting(t, vm)
	eventually(t, func() string {
		if at := get(t, pod).DeletionGracePeriodSeconds; pod.DeletionTimestamp == nil || ptr.Deref(at, 30) != 1 {
			return fmt.Sprintf("the pod has %v seconds of grace, deleted %v", at, pod.DeletionTimestamp)
		}
		return ""
	})
}

func TestADrainBehindTwoBudgetsNamesBoth(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	newFooCluster(t, namespace, "prod")
	startOperator(t, namespace, "core")
	machine, _, _, node := runningMachine(t, namespace, "prod", "twice", nil)
	newPod(t, namespace, "guarded", node.Name)
	newBudget(t, namespace, "guarded", 1)
	second := newBudget(t, namespace, "other", 1)
	second.Spec.Selector.MatchLabels["app"] = "guarded"
	if err := admin.Update(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	if err := admin.Delete(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
	wantCondition(t, machine, clusterv1.MachineDeletingCondition, "True", "DrainingNode", "disruption budgets that cover it: guarded, other")
	if text := machine.Status.Conditions; strings.Contains(fmt.Sprint(text), "InternalError") {
		t.Errorf("a refused eviction is an error of the operator: %v", text)
	}
}

func mergePatch(t *testing.T, obj client.Object, patch string) {
	t.Helper()
	if err := admin.Patch(t.Context(), obj, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatalf("patch %T %q: %v", obj, obj.GetName(), err)
	}
}
