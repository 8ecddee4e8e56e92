package main

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/cli"
)

var machineColumns = cli.Columns{
	{Name: "Name"}, {Name: "Role"}, {Name: "Node"}, {Name: "Version"}, {Name: "Phase"},
	{Name: "Provider-ID"}, {Name: "IP"}, {Name: "Age"},
	{Name: "Ready", Wide: true}, {Name: "Up-To-Date", Wide: true}, {Name: "Failure-Domain", Wide: true},
	{Name: "Owner", Wide: true}, {Name: "OS-Image", Wide: true}, {Name: "Message", Wide: true},
}

// machineTable shows machines, those of the control plane first. Their messages are shown where one has any, and always
// when asked for: a table that goes on cannot get a column later.
func machineTable(machines []client.Object, messages bool, now time.Time) *metav1.Table {
	machines = slices.Clone(machines)
	slices.SortStableFunc(machines, func(a, b client.Object) int { return strings.Compare(role(a), role(b)) })
	table := machineColumns.Table()
	for _, obj := range machines {
		m := obj.(*clusterv1.Machine)
		osImage := ""
		if m.Status.NodeInfo != nil {
			osImage = m.Status.NodeInfo.OSImage
		}
		cli.AddRow(table, m,
			m.Name, role(m), m.Status.NodeRef.Name, m.Spec.Version, phase(m.Status.Phase, m),
			m.Spec.ProviderID, address(m), cli.Age(now, m.CreationTimestamp.Time),
			conditionStatus(m.Status.Conditions, clusterv1.MachineReadyCondition),
			conditionStatus(m.Status.Conditions, clusterv1.MachineUpToDateCondition),
			m.Status.FailureDomain, owner(m), osImage, machineMessage(m))
		messages = messages || machineMessage(m) != ""
	}
	if messages {
		table.ColumnDefinitions[len(table.ColumnDefinitions)-1].Priority = 0
	}
	return table
}

func role(machine client.Object) string {
	if _, controlPlane := machine.GetLabels()[clusterv1.MachineControlPlaneLabel]; controlPlane {
		return "control-plane"
	}
	return "worker"
}

// address is the address by which one reaches the machine: an internal one
// before an external one before none.
func address(machine *clusterv1.Machine) string {
	for _, wanted := range []clusterv1.MachineAddressType{clusterv1.MachineInternalIP, clusterv1.MachineExternalIP} {
		for _, a := range machine.Status.Addresses {
			if a.Type == wanted {
				return a.Address
			}
		}
	}
	return ""
}

// owner is what one scales to have more or fewer of the machine.
func owner(machine *clusterv1.Machine) string {
	if name := machine.Labels[clusterv1.MachineDeploymentNameLabel]; name != "" {
		return "machinedeployment/" + name
	}
	if controller := metav1.GetControllerOf(machine); controller != nil {
		return strings.ToLower(controller.Kind) + "/" + controller.Name
	}
	return ""
}

// machineMessage is what holds a machine up, in one line: its deletion, else what keeps it from being ready.
func machineMessage(machine *clusterv1.Machine) string {
	conditionType := clusterv1.MachineReadyCondition
	if machine.DeletionTimestamp != nil {
		conditionType = clusterv1.MachineDeletingCondition
	}
	for _, c := range machine.Status.Conditions {
		if c.Type == conditionType && (machine.DeletionTimestamp != nil || c.Status != metav1.ConditionTrue) {
			return oneLine(c.Message)
		}
	}
	return ""
}

// oneLine joins the lines of a message. Tables end a cell with the line.
func oneLine(message string) string {
	text := ""
	for line := range strings.Lines(message) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "* ")
		switch {
		case line == "":
		case text == "":
			text = line
		case strings.HasSuffix(text, ":"):
			text += " " + line
		default:
			text += "; " + line
		}
	}
	return text
}
