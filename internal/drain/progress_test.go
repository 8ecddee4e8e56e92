package drain

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestProgressNamesEachPodThatHoldsUpTheDrain(t *testing.T) {
	const full = "The disruption budget db needs 3 healthy pods and has 3 currently"
	progress := Progress{
		Terminating: []string{"b/web-2", "b/web-1"},
		Later:       []string{"z/last"},
		Completing:  []Cause{{"c/job", `MachineDrainRule "jobs"`}},
		Refused:     []Cause{{"a/db-1", full}, {"a/one", "Internal error"}, {"a/db-0", full}},
	}
	want := []string{
		"Pod a/one cannot be evicted: Internal error",
		"Pods a/db-0, a/db-1 cannot be evicted: " + full,
		`Pod c/job: not evicted but waited for until completed, as MachineDrainRule "jobs" asks`,
		"Pods b/web-1, b/web-2: evicted, not yet terminated",
		"Pod z/last: evicted when the pods of a lower order are gone",
	}
	if diff := cmp.Diff(want, progress.Lines()); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

func TestADrainIsDoneWhenNoPodIsLeft(t *testing.T) {
	for name, p := range map[string]Progress{
		"refused":     {Refused: []Cause{{"a/1", "no"}}},
		"completing":  {Completing: []Cause{{"a/1", "a rule"}}},
		"terminating": {Terminating: []string{"a/1"}},
		"later":       {Later: []string{"a/1"}},
	} {
		if p.Done() {
			t.Errorf("done with a pod that is %s", name)
		}
	}
	if !(Progress{}).Done() {
		t.Error("not done with no pod left")
	}
}

func TestManyPodsAndCausesAreCounted(t *testing.T) {
	if got, want := namePods([]string{"a/7", "a/1", "a/2", "a/3", "a/4", "a/5", "a/6"}), "Pods a/1, a/2, a/3, a/4, a/5, ... (2 more)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	var progress Progress
	for i := range 100 {
		progress.Refused = append(progress.Refused, Cause{fmt.Sprintf("a/%02d", i), fmt.Sprintf("cause %02d", i)})
	}
	lines := progress.Lines()
	if len(lines) != maxCausesNamed+1 || !strings.Contains(lines[maxCausesNamed], "(85 more) cannot be evicted: for other causes") {
		t.Errorf("lines:\n%s", strings.Join(lines, "\n"))
	}
}

func TestARefusalIsToldInTheWordsOfItsCause(t *testing.T) {
	withCause := func(err *apierrors.StatusError, cause metav1.CauseType, message string) error {
		err.ErrStatus.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: cause, Message: message}}}
		return err
	}
	forbidden := apierrors.NewForbidden(corev1.Resource("pods"), "web", errors.New("being terminated"))
	for name, tc := range map[string]struct {
		err     error
		budgets []string
		want    string
	}{
		"a budget":                     {withCause(apierrors.NewTooManyRequests("no", 0), policyv1.DisruptionBudgetCause, "The disruption budget db needs 1"), nil, "The disruption budget db needs 1"},
		"a namespace that goes":        {withCause(forbidden, corev1.NamespaceTerminatingCause, "x"), nil, "its namespace is being deleted, and deletes it"},
		"something else":               {errors.New("denied by a webhook"), nil, "denied by a webhook"},
		"two budgets that cover a pod": {errors.New("more than one budget"), []string{"a", "b"}, "more than one budget (disruption budgets that cover it: a, b)"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := refusal(tc.err, func() []string { return tc.budgets }); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
