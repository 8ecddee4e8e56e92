package machinehealthcheck

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/conditions"
)

// invalidSpecReason is told by RemediationAllowed where the spec holds what upstream's webhook would have refused.
const invalidSpecReason = "InvalidSpec"

// maxNamed is how many Machines a message names before it only counts.
const maxNamed = 5

// limit is how many Machines may be not healthy for remediation to go on.
type limit struct {
	from, to int
	// rule is what the user wrote, for messages.
	rule string
}

// permission returns the condition RemediationAllowed, and how many Machines more could fail before it is False. sick
// are those of the expected Machines that are not healthy.
func permission(check *clusterv1.MachineHealthCheck, expected int, sick []string) (metav1.Condition, int) {
	const kind = clusterv1.MachineHealthCheckRemediationAllowedCondition
	if err := validate(check); err != nil {
		return conditions.False(kind, invalidSpecReason, "%s", err.Error()), 0
	}
	allowed, err := limitOf(check.Spec.Remediation.TriggerIf, expected)
	if err != nil {
		return conditions.False(kind, invalidSpecReason, "%s", err.Error()), 0
	}
	if n := len(sick); n < allowed.from || n > allowed.to {
		return conditions.False(kind, clusterv1.MachineHealthCheckTooManyUnhealthyReason, "%d of %d Machines are not healthy%s, %s: no Machine is remediated",
			n, expected, names(sick), allowed.rule), 0
	}
	return conditions.True(kind, clusterv1.MachineHealthCheckRemediationAllowedReason, ""), allowed.to - len(sick)
}

// validate finds what would make a check do something else than its user meant.
func validate(check *clusterv1.MachineHealthCheck) error {
	selector := check.Spec.Selector
	if len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		return fmt.Errorf("spec.selector is empty and would select every Machine of the cluster: set matchLabels")
	}
	if _, err := metav1.LabelSelectorAsSelector(&selector); err != nil {
		return fmt.Errorf("spec.selector: %w", err)
	}
	return nil
}

// limitOf reads triggerIf. A percentage is of the expected Machines and rounds down; a range wins over a number.
func limitOf(triggerIf clusterv1.MachineHealthCheckRemediationTriggerIf, expected int) (limit, error) {
	if text := triggerIf.UnhealthyInRange; text != "" {
		const field = "spec.remediation.triggerIf.unhealthyInRange"
		out := limit{rule: fmt.Sprintf("%s is %s", field, text)}
		if n, err := fmt.Sscanf(text, "[%d-%d]", &out.from, &out.to); n != 2 || err != nil || out.from > out.to {
			return limit{}, fmt.Errorf(`%s is %q: write a range like "[1-3]", the smaller number first`, field, text)
		}
		return out, nil
	}
	const field = "spec.remediation.triggerIf.unhealthyLessThanOrEqualTo"
	value := triggerIf.UnhealthyLessThanOrEqualTo
	if value == nil {
		return limit{to: expected}, nil
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(value, expected, false)
	if err != nil {
		return limit{}, fmt.Errorf(`%s is %q: write a number or a percentage like "40%%"`, field, value.String())
	}
	out := limit{to: n, rule: fmt.Sprintf("%s is %s", field, value.String())}
	if value.Type == intstr.String {
		out.rule += fmt.Sprintf(", which is %d", n)
	}
	return out, nil
}

// names lists Machines in parentheses.
func names(machines []string) string {
	if len(machines) == 0 {
		return ""
	}
	sorted := slices.Sorted(slices.Values(machines))
	text := strings.Join(sorted[:min(len(sorted), maxNamed)], ", ")
	if hidden := len(sorted) - maxNamed; hidden > 0 {
		text += fmt.Sprintf(", ... %d more", hidden)
	}
	return " (" + text + ")"
}
