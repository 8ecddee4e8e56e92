package drain

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Values of the label cluster.x-k8s.io/drain of a pod (clusterv1.PodDrainLabel). Case does not matter, as upstream.
const (
	labelSkip          = "skip"
	labelWaitCompleted = "wait-completed"
)

// Rules are those that apply to one Machine, by name: the first that selects a pod decides.
type Rules []rule

// rule is a MachineDrainRule with its selectors parsed.
type rule struct {
	name     string
	behavior clusterv1.MachineDrainRuleDrainBehavior
	order    int32
	// pods is empty when the rule is for all of them.
	pods []podSelector
}

// podSelector selects by the labels of a pod and of its namespace; nil selects all.
type podSelector struct{ pod, namespace labels.Selector }

// behavior is what happens to one pod.
type behavior struct {
	kind  clusterv1.MachineDrainRuleDrainBehavior
	order int32
	// by names the rule or the label that decided; empty by default.
	by string
}

// RulesFor returns those of a namespace's rules that apply to a Machine. The error names a selector that does not
// parse: CRD schemas do not check selectors.
func RulesFor(machine *clusterv1.Machine, cluster *clusterv1.Cluster, all []clusterv1.MachineDrainRule) (Rules, error) {
	var out Rules
	for _, from := range all {
		applies, err := appliesTo(from, machine, cluster)
		if err != nil {
			return nil, err
		}
		if !applies {
			continue
		}
		to := rule{name: from.Name, behavior: from.Spec.Drain.Behavior}
		if order := from.Spec.Drain.Order; order != nil && to.behavior == clusterv1.MachineDrainRuleDrainBehaviorDrain {
			to.order = *order
		}
		for i, selector := range from.Spec.Pods {
			var parsed podSelector
			if parsed.pod, err = parse(selector.Selector, from.Name, "pods[%d].selector", i); err != nil {
				return nil, err
			}
			if parsed.namespace, err = parse(selector.NamespaceSelector, from.Name, "pods[%d].namespaceSelector", i); err != nil {
				return nil, err
			}
			to.pods = append(to.pods, parsed)
		}
		out = append(out, to)
	}
	slices.SortFunc(out, func(a, b rule) int { return strings.Compare(a.name, b.name) })
	return out, nil
}

func appliesTo(from clusterv1.MachineDrainRule, machine *clusterv1.Machine, cluster *clusterv1.Cluster) (bool, error) {
	applies := len(from.Spec.Machines) == 0
	for i, selector := range from.Spec.Machines {
		ofMachine, err := parse(selector.Selector, from.Name, "machines[%d].selector", i)
		if err != nil {
			return false, err
		}
		ofCluster, err := parse(selector.ClusterSelector, from.Name, "machines[%d].clusterSelector", i)
		if err != nil {
			return false, err
		}
		applies = applies || selects(ofMachine, machine.Labels) && selects(ofCluster, cluster.Labels)
	}
	return applies, nil
}

// parse returns nil for a selector that is not set, which here selects all.
func parse(selector *metav1.LabelSelector, name, field string, index int) (labels.Selector, error) {
	if selector == nil {
		return nil, nil
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, fmt.Errorf("MachineDrainRule %q: spec."+field+" is not a selector: %w: correct it or delete the rule", name, index, err)
	}
	return parsed, nil
}

func selects(selector labels.Selector, set map[string]string) bool {
	return selector == nil || selector.Matches(labels.Set(set))
}

// NeedNamespaces tells whether the labels of namespaces matter.
func (r Rules) NeedNamespaces() bool {
	return slices.ContainsFunc(r, func(one rule) bool {
		return slices.ContainsFunc(one.pods, func(s podSelector) bool { return s.namespace != nil })
	})
}

// of decides about a pod: its label goes before the rules.
func (r Rules) of(pod *corev1.Pod, namespaces map[string]map[string]string) behavior {
	switch value := pod.Labels[clusterv1.PodDrainLabel]; strings.ToLower(value) {
	case labelSkip:
		return behavior{kind: clusterv1.MachineDrainRuleDrainBehaviorSkip, by: "its label"}
	case labelWaitCompleted:
		return behavior{
			kind: clusterv1.MachineDrainRuleDrainBehaviorWaitCompleted,
			by:   fmt.Sprintf("the label %s=%s", clusterv1.PodDrainLabel, value),
		}
	}
	for _, one := range r {
		if one.selects(pod, namespaces) {
			return behavior{kind: one.behavior, order: one.order, by: fmt.Sprintf("MachineDrainRule %q", one.name)}
		}
	}
	return behavior{kind: clusterv1.MachineDrainRuleDrainBehaviorDrain}
}

func (r rule) selects(pod *corev1.Pod, namespaces map[string]map[string]string) bool {
	return len(r.pods) == 0 || slices.ContainsFunc(r.pods, func(s podSelector) bool {
		return selects(s.pod, pod.Labels) && selects(s.namespace, namespaces[pod.Namespace])
	})
}
