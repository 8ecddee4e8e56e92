package lifecycle

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/conditions"
)

// maxNamed is how many Machines a message names before it only counts.
const maxNamed = 5

// CountVersions returns how many of the Machines ask for each Kubernetes version, oldest first.
func CountVersions(machines []*clusterv1.Machine) []clusterv1.StatusVersion {
	counts := map[string]int32{}
	for _, machine := range machines {
		if machine.Spec.Version != "" {
			counts[machine.Spec.Version]++
		}
	}
	var out []clusterv1.StatusVersion
	for _, version := range slices.SortedFunc(maps.Keys(counts), compareVersions) {
		out = append(out, clusterv1.StatusVersion{Version: version, Replicas: counts[version]})
	}
	return out
}

// compareVersions orders what is no version as text, before all versions.
func compareVersions(a, b string) int {
	x, errX := ParseVersion(a)
	y, errY := ParseVersion(b)
	switch {
	case errX == nil && errY == nil:
		return cmp.Or(x.Compare(y), cmp.Compare(a, b))
	case errX != nil && errY != nil:
		return cmp.Compare(a, b)
	case errX != nil:
		return -1
	}
	return 1
}

// Remediating is the condition of the owner of Machines: True while a Machine that failed its health check is being
// replaced.
func Remediating(machines []*clusterv1.Machine) metav1.Condition {
	var names []string
	unhealthy := 0
	for _, machine := range machines {
		if !conditions.IsFalse(machine, clusterv1.MachineHealthCheckSucceededCondition) {
			continue
		}
		unhealthy++
		if conditions.IsFalse(machine, clusterv1.MachineOwnerRemediatedCondition) {
			names = append(names, machine.Name)
		}
	}
	switch {
	case len(names) > 0:
		return conditions.True(clusterv1.RemediatingCondition, clusterv1.RemediatingReason, "Replacing %s", nameMachines(names))
	case unhealthy > 0:
		return conditions.False(clusterv1.RemediatingCondition, clusterv1.NotRemediatingReason,
			"%d Machines failed their health check and are not replaced by this object", unhealthy)
	}
	return conditions.False(clusterv1.RemediatingCondition, clusterv1.NotRemediatingReason, "")
}

// WaitingForMachines says which Machines an owner that is being deleted waits for.
func WaitingForMachines(machines []*clusterv1.Machine) string {
	if len(machines) == 0 {
		return "All Machines are gone"
	}
	names := make([]string, 0, len(machines))
	for _, machine := range machines {
		names = append(names, machine.Name)
	}
	return "Waiting until " + nameMachines(names) + " are gone: see the condition Deleting of each"
}

func nameMachines(names []string) string {
	slices.Sort(names)
	text := strings.Join(names[:min(len(names), maxNamed)], ", ")
	if hidden := len(names) - maxNamed; hidden > 0 {
		text += fmt.Sprintf(", ... (%d more)", hidden)
	}
	return "Machines " + text
}
