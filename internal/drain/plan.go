package drain

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Plan is what becomes of the pods of a Node in one round.
type Plan struct {
	// Evict are the pods of the lowest order that are not on their way out yet.
	Evict []corev1.Pod
	// Terminating are on their way out, of whatever order.
	Terminating []corev1.Pod
	// Completing are never evicted: the drain waits until they have run to their end.
	Completing []Held
	// Later are evicted when those of a lower order are gone.
	Later []corev1.Pod
}

// Held is a pod that is waited for, and who asks for that.
type Held struct {
	Pod corev1.Pod
	By  string
}

// NewPlan sorts pods by what rules ask. namespaces are the labels of namespaces by name, and may be nil unless
// rules.NeedNamespaces. Pods to skip are in no list.
func NewPlan(pods []corev1.Pod, rules Rules, namespaces map[string]map[string]string) Plan {
	type candidate struct {
		pod   corev1.Pod
		order int32
	}
	var plan Plan
	var candidates []candidate
	var orders []int32
	for _, pod := range pods {
		b := rules.of(&pod, namespaces)
		switch {
		case b.kind == clusterv1.MachineDrainRuleDrainBehaviorSkip:
			continue
		case b.kind == clusterv1.MachineDrainRuleDrainBehaviorWaitCompleted && finished(&pod):
			continue
		case pod.DeletionTimestamp != nil:
			plan.Terminating = append(plan.Terminating, pod)
		case b.kind == clusterv1.MachineDrainRuleDrainBehaviorWaitCompleted:
			plan.Completing = append(plan.Completing, Held{Pod: pod, By: b.by})
		default:
			candidates = append(candidates, candidate{pod, b.order})
		}
		orders = append(orders, b.order)
	}
	for _, c := range candidates {
		if c.order == slices.Min(orders) {
			plan.Evict = append(plan.Evict, c.pod)
		} else {
			plan.Later = append(plan.Later, c.pod)
		}
	}
	return plan
}

func finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// budgetsOf names the disruption budgets that cover a pod, for refusals that do not name one.
func budgetsOf(pod *corev1.Pod, budgets []policyv1.PodDisruptionBudget) []string {
	var names []string
	for _, budget := range budgets {
		// A selector that is not set selects nothing in policy/v1, and none that does not parse is in force.
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err == nil && budget.Namespace == pod.Namespace && selector.Matches(labels.Set(pod.Labels)) {
			names = append(names, budget.Name)
		}
	}
	slices.SortFunc(names, strings.Compare)
	return names
}
