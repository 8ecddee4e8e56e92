package drain

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

type labelled = map[string]string

// makePod returns a pod named namespace/name.
func makePod(name string, labels labelled, changes ...func(*corev1.Pod)) corev1.Pod {
	namespace, name, _ := strings.Cut(name, "/")
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}}
	for _, change := range changes {
		change(&pod)
	}
	return pod
}

func terminating(pod *corev1.Pod) { now := metav1.Now(); pod.DeletionTimestamp = &now }
func succeeded(pod *corev1.Pod)   { pod.Status.Phase = corev1.PodSucceeded }

func matching(labels labelled) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: labels}
}

// makeRule returns a rule for the pods that selectors select, or for all.
func makeRule(name string, behavior clusterv1.MachineDrainRuleDrainBehavior, order int32, selectors ...clusterv1.MachineDrainRulePodSelector) clusterv1.MachineDrainRule {
	rule := clusterv1.MachineDrainRule{ObjectMeta: metav1.ObjectMeta{Name: name}}
	rule.Spec.Drain = clusterv1.MachineDrainRuleDrainConfig{Behavior: behavior, Order: &order}
	rule.Spec.Pods = selectors
	return rule
}

func app(name string) clusterv1.MachineDrainRulePodSelector {
	return clusterv1.MachineDrainRulePodSelector{Selector: matching(labelled{"app": name})}
}

const (
	drainIt = clusterv1.MachineDrainRuleDrainBehaviorDrain
	skip    = clusterv1.MachineDrainRuleDrainBehaviorSkip
	await   = clusterv1.MachineDrainRuleDrainBehaviorWaitCompleted
)

// planned is a Plan with names instead of pods.
type planned struct{ Evict, Terminating, Completing, Later []string }

func names(plan Plan) planned {
	out := planned{Evict: namesOf(plan.Evict), Terminating: namesOf(plan.Terminating), Later: namesOf(plan.Later)}
	for _, held := range plan.Completing {
		out.Completing = append(out.Completing, nameOf(&held.Pod)+" by "+held.By)
	}
	return out
}

func TestPodsAreDrainedAsTheirLabelsAndTheRulesSay(t *testing.T) {
	for name, tc := range map[string]struct {
		rules []clusterv1.MachineDrainRule
		pods  []corev1.Pod
		want  planned
	}{
		"no rules": {
			nil,
			[]corev1.Pod{makePod("a/1", nil), makePod("a/2", nil, terminating)},
			planned{Evict: []string{"a/1"}, Terminating: []string{"a/2"}},
		},
		"lower orders first, the next when they are gone": {
			[]clusterv1.MachineDrainRule{makeRule("db", drainIt, 10, app("db")), makeRule("lb", drainIt, -5, app("lb"))},
			[]corev1.Pod{makePod("a/db", labelled{"app": "db"}), makePod("a/lb", labelled{"app": "lb"}), makePod("a/web", nil)},
			planned{Evict: []string{"a/lb"}, Later: []string{"a/db", "a/web"}},
		},
		"a pod on its way out holds its order": {
			[]clusterv1.MachineDrainRule{makeRule("db", drainIt, 10, app("db"))},
			[]corev1.Pod{makePod("a/db", labelled{"app": "db"}), makePod("a/web", nil, terminating)},
			planned{Terminating: []string{"a/web"}, Later: []string{"a/db"}},
		},
		"the last order alone": {
			[]clusterv1.MachineDrainRule{makeRule("db", drainIt, 10, app("db"))},
			[]corev1.Pod{makePod("a/db", labelled{"app": "db"})},
			planned{Evict: []string{"a/db"}},
		},
		"a skipped pod is no concern, also while it terminates": {
			[]clusterv1.MachineDrainRule{makeRule("agent", skip, 0, app("agent"))},
			[]corev1.Pod{makePod("a/1", labelled{"app": "agent"}), makePod("a/2", labelled{"app": "agent"}, terminating)},
			planned{},
		},
		"a job is waited for and never evicted": {
			[]clusterv1.MachineDrainRule{makeRule("jobs", await, 0, app("job"))},
			[]corev1.Pod{makePod("a/job", labelled{"app": "job"}), makePod("a/web", nil)},
			planned{Evict: []string{"a/web"}, Completing: []string{`a/job by MachineDrainRule "jobs"`}},
		},
		"a job counts as order 0, whatever its rule says": {
			[]clusterv1.MachineDrainRule{makeRule("jobs", await, 99, app("job")), makeRule("last", drainIt, 1, app("web"))},
			[]corev1.Pod{makePod("a/job", labelled{"app": "job"}), makePod("a/web", labelled{"app": "web"})},
			planned{Completing: []string{`a/job by MachineDrainRule "jobs"`}, Later: []string{"a/web"}},
		},
		"a job that has run to its end is gone": {
			[]clusterv1.MachineDrainRule{makeRule("jobs", await, 0, app("job")), makeRule("last", drainIt, 1, app("web"))},
			[]corev1.Pod{makePod("a/job", labelled{"app": "job"}, succeeded), makePod("a/web", labelled{"app": "web"})},
			planned{Evict: []string{"a/web"}},
		},
		"a job that somebody deleted is on its way out": {
			[]clusterv1.MachineDrainRule{makeRule("jobs", await, 0, app("job"))},
			[]corev1.Pod{makePod("a/job", labelled{"app": "job"}, terminating)},
			planned{Terminating: []string{"a/job"}},
		},
		"a label goes before the rules, in any case": {
			[]clusterv1.MachineDrainRule{makeRule("all", drainIt, 3)},
			[]corev1.Pod{
				makePod("a/skip", labelled{clusterv1.PodDrainLabel: "Skip"}),
				makePod("a/wait", labelled{clusterv1.PodDrainLabel: "wait-completed"}),
				makePod("a/else", labelled{clusterv1.PodDrainLabel: "whatever"}),
			},
			planned{Completing: []string{"a/wait by the label cluster.x-k8s.io/drain=wait-completed"}, Later: []string{"a/else"}},
		},
		"of two rules the first by name decides": {
			[]clusterv1.MachineDrainRule{makeRule("b", drainIt, 0, app("x")), makeRule("a", skip, 0, app("x"))},
			[]corev1.Pod{makePod("a/1", labelled{"app": "x"})},
			planned{},
		},
		"selectors of one rule are alternatives, their halves are not": {
			[]clusterv1.MachineDrainRule{makeRule("r", skip, 0, app("x"), clusterv1.MachineDrainRulePodSelector{
				Selector: matching(labelled{"app": "y"}), NamespaceSelector: matching(labelled{"team": "core"}),
			})},
			[]corev1.Pod{
				makePod("core/x", labelled{"app": "x"}), makePod("core/y", labelled{"app": "y"}),
				makePod("other/y", labelled{"app": "y"}), makePod("core/z", labelled{"app": "z"}),
			},
			planned{Evict: []string{"other/y", "core/z"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			rules, err := RulesFor(&clusterv1.Machine{}, &clusterv1.Cluster{}, tc.rules)
			if err != nil {
				t.Fatal(err)
			}
			got := names(NewPlan(tc.pods, rules, map[string]map[string]string{"core": {"team": "core"}}))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

func TestARuleAppliesToTheMachinesThatItSelects(t *testing.T) {
	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Labels: labelled{"os": "linux"}}}
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Labels: labelled{"stage": "production"}}}
	linux, windows := matching(labelled{"os": "linux"}), matching(labelled{"os": "windows"})
	production, test := matching(labelled{"stage": "production"}), matching(labelled{"stage": "test"})
	for name, tc := range map[string]struct {
		machines []clusterv1.MachineDrainRuleMachineSelector
		want     bool
	}{
		"no selectors":                  {nil, true},
		"the machine's label":           {[]clusterv1.MachineDrainRuleMachineSelector{{Selector: linux}}, true},
		"another label":                 {[]clusterv1.MachineDrainRuleMachineSelector{{Selector: windows}}, false},
		"the cluster's label":           {[]clusterv1.MachineDrainRuleMachineSelector{{ClusterSelector: production}}, true},
		"both must match":               {[]clusterv1.MachineDrainRuleMachineSelector{{Selector: linux, ClusterSelector: test}}, false},
		"one of several is enough":      {[]clusterv1.MachineDrainRuleMachineSelector{{Selector: windows}, {ClusterSelector: production}}, true},
		"an empty selector selects all": {[]clusterv1.MachineDrainRuleMachineSelector{{Selector: &metav1.LabelSelector{}}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			rule := makeRule("r", skip, 0)
			rule.Spec.Machines = tc.machines
			rules, err := RulesFor(machine, cluster, []clusterv1.MachineDrainRule{rule})
			if err != nil {
				t.Fatal(err)
			}
			if got := len(rules) == 1; got != tc.want {
				t.Errorf("applies: %v, want %v", got, tc.want)
			}
		})
	}
}

func TestASelectorThatDoesNotParseIsNamed(t *testing.T) {
	bad := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}
	rule := makeRule("typo", skip, 0, app("x"), clusterv1.MachineDrainRulePodSelector{NamespaceSelector: bad})
	_, err := RulesFor(&clusterv1.Machine{}, &clusterv1.Cluster{}, []clusterv1.MachineDrainRule{rule})
	if err == nil || !strings.Contains(err.Error(), `MachineDrainRule "typo": spec.pods[1].namespaceSelector`) {
		t.Errorf("error: %v", err)
	}
	rule.Spec.Machines = []clusterv1.MachineDrainRuleMachineSelector{{Selector: matching(labelled{"no": "such"})}}
	if _, err := RulesFor(&clusterv1.Machine{}, &clusterv1.Cluster{}, []clusterv1.MachineDrainRule{rule}); err != nil {
		t.Errorf("a rule for other machines holds this one up: %v", err)
	}
}

func TestABudgetCoversThePodsOfItsNamespaceThatItSelects(t *testing.T) {
	budget := func(namespace, name string, selector *metav1.LabelSelector) policyv1.PodDisruptionBudget {
		return policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec:       policyv1.PodDisruptionBudgetSpec{Selector: selector},
		}
	}
	pod := makePod("a/web", labelled{"app": "web"})
	got := budgetsOf(&pod, []policyv1.PodDisruptionBudget{
		budget("a", "web", matching(labelled{"app": "web"})), budget("a", "all", &metav1.LabelSelector{}),
		budget("a", "none", nil), budget("a", "db", matching(labelled{"app": "db"})), budget("b", "web", matching(labelled{"app": "web"})),
	})
	if diff := cmp.Diff([]string{"all", "web"}, got); diff != "" {
		t.Errorf("budgets (-want +got):\n%s", diff)
	}
}
