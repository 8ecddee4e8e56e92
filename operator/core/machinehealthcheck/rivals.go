package machinehealthcheck

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// leftOutPrefix is how the message begins about Machines that are left to another check.
const leftOutPrefix = "left to the older MachineHealthCheck "

// rival is a check that goes before another one of the same cluster: a Machine that both select is left to it. Two
// verdicts on one Machine would overwrite each other for ever.
type rival struct {
	name     string
	selector labels.Selector
}

// rivalsOf returns the checks of all that are older than a check, the oldest first; among those of one second the name
// decides. One that is paused keeps its Machines: its user does not want them to be remediated now.
func rivalsOf(check *clusterv1.MachineHealthCheck, all []clusterv1.MachineHealthCheck) []rival {
	older := slices.DeleteFunc(slices.Clone(all), func(other clusterv1.MachineHealthCheck) bool {
		return other.Name == check.Name || other.Namespace != check.Namespace || other.Spec.ClusterName != check.Spec.ClusterName ||
			!other.DeletionTimestamp.IsZero() || validate(&other) != nil || byAge(&other, check) > 0
	})
	slices.SortFunc(older, func(a, b clusterv1.MachineHealthCheck) int { return byAge(&a, &b) })
	var out []rival
	for _, other := range older {
		if selector, err := metav1.LabelSelectorAsSelector(&other.Spec.Selector); err == nil {
			out = append(out, rival{name: other.Name, selector: selector})
		}
	}
	return out
}

func byAge(a, b *clusterv1.MachineHealthCheck) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

// takenBy returns the name of the rival that a Machine is left to, "" when there is none.
func takenBy(rivals []rival, machine *clusterv1.Machine) string {
	for _, other := range rivals {
		if other.selector.Matches(labels.Set(machine.Labels)) {
			return other.name
		}
	}
	return ""
}

// leftToOthers tells which Machines that a check selects it does not judge, and who does: names of Machines by that of
// the check. It is empty where there are none.
func leftToOthers(taken map[string][]string) string {
	var lines []string
	for _, other := range slices.Sorted(maps.Keys(taken)) {
		lines = append(lines, fmt.Sprintf(leftOutPrefix+"%s, which selects them too: %d Machines%s", other, len(taken[other]), names(taken[other])))
	}
	return strings.Join(lines, "; ")
}
