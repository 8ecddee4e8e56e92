package cluster

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/contract"
)

// part is one thing that holds machines, with the conditions of a deployment: a stand-alone Machine is a deployment of
// one.
type part struct {
	kind, name string
	get        func(conditionType string) *metav1.Condition
}

func controlPlaneParts(s *snapshot) []part {
	var out []part
	if obj := s.controlPlane.obj; obj != nil {
		out = append(out, partOf(obj.GetKind(), obj.GetName(), contract.Conditions(obj)))
	}
	return append(out, machineParts(s.controlPlaneMachines)...)
}

func workerParts(s *snapshot) []part {
	var out []part
	for i := range s.deployments {
		out = append(out, partOf("MachineDeployment", s.deployments[i].Name, &s.deployments[i]))
	}
	for i := range s.sets {
		out = append(out, partOf("MachineSet", s.sets[i].Name, &s.sets[i]))
	}
	return append(out, machineParts(s.workers)...)
}

func partOf(kind, name string, obj conditions.Getter) part {
	return part{kind: kind, name: name, get: func(conditionType string) *metav1.Condition {
		return conditions.Get(obj, conditionType)
	}}
}

func machineParts(machines []clusterv1.Machine) []part {
	own := map[string]string{
		clusterv1.MachinesReadyCondition:    clusterv1.MachineReadyCondition,
		clusterv1.MachinesUpToDateCondition: clusterv1.MachineUpToDateCondition,
		clusterv1.AvailableCondition:        clusterv1.MachineAvailableCondition,
	}
	var out []part
	for i := range machines {
		machine := &machines[i]
		out = append(out, part{kind: "Machine", name: machine.Name, get: func(conditionType string) *metav1.Condition {
			have := conditions.Get(machine, own[conditionType])
			if have == nil && conditionType == clusterv1.MachinesUpToDateCondition {
				// A stand-alone Machine has nothing to be up to date with.
				upToDate := conditions.True(conditionType, clusterv1.MachineUpToDateReason, "")
				return &upToDate
			}
			return have
		}})
	}
	slices.SortFunc(out, func(a, b part) int { return strings.Compare(a.name, b.name) })
	return out
}

// reasons of a folded condition.
type reasons struct{ yes, no, unknown, empty string }

var (
	readyReasons     = reasons{clusterv1.ReadyReason, clusterv1.NotReadyReason, clusterv1.ReadyUnknownReason, clusterv1.NoReplicasReason}
	upToDateReasons  = reasons{clusterv1.UpToDateReason, clusterv1.NotUpToDateReason, clusterv1.UpToDateUnknownReason, clusterv1.NoReplicasReason}
	availableReasons = reasons{
		clusterv1.ClusterWorkersAvailableReason, clusterv1.ClusterWorkersNotAvailableReason,
		clusterv1.ClusterWorkersAvailableUnknownReason, clusterv1.ClusterWorkersAvailableNoWorkersReason,
	}
)

// workersAvailable counts whole deployments: each says itself how many machines it may lack.
func workersAvailable(parts []part) metav1.Condition {
	return fold(parts, clusterv1.AvailableCondition, clusterv1.ClusterWorkersAvailableCondition, availableReasons)
}

// fold makes one condition of those of all parts: True when all are, False when one is, else Unknown. A MachineSet has
// no condition Available; a part that does not report a condition it should have is Unknown.
func fold(parts []part, from, to string, r reasons) metav1.Condition {
	if len(parts) == 0 {
		return conditions.True(to, r.empty, "")
	}
	result := conditions.True(to, r.yes, "")
	var lines []string
	for _, p := range parts {
		if p.kind == "MachineSet" && from == clusterv1.AvailableCondition {
			continue
		}
		have := p.get(from)
		if have == nil {
			missing := conditions.Unknown(from, r.unknown, "Condition %s not yet reported", from)
			have = &missing
		}
		switch {
		case have.Status == metav1.ConditionTrue:
			continue
		case have.Status == metav1.ConditionFalse:
			result.Status, result.Reason = metav1.ConditionFalse, r.no
		case result.Status == metav1.ConditionTrue:
			result.Status, result.Reason = metav1.ConditionUnknown, r.unknown
		}
		lines = append(lines, p.line(have.Message))
	}
	result.Message = strings.Join(lines, "\n")
	return result
}

// anyTrue makes one condition of those of all parts that is True when one is. Parts that do not report it do not count.
func anyTrue(parts []part, conditionType, yes, no string) metav1.Condition {
	result := conditions.False(conditionType, no, "")
	var lines []string
	for _, p := range parts {
		if have := p.get(conditionType); have != nil && have.Status == metav1.ConditionTrue {
			result.Status, result.Reason = metav1.ConditionTrue, yes
			lines = append(lines, p.line(have.Message))
		}
	}
	result.Message = strings.Join(lines, "\n")
	return result
}

func (p part) line(message string) string {
	subject := "* " + p.kind + " " + p.name
	switch {
	case message == "":
		return subject
	case strings.Contains(message, "\n") || strings.HasPrefix(message, "* "):
		return subject + ":\n  " + strings.ReplaceAll(message, "\n", "\n  ")
	}
	return subject + ": " + message
}
