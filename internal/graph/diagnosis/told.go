package diagnosis

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/graph"
	"github.com/millwright-dev/millwright/internal/lifecycle"
)

// told is a condition that names trouble by itself.
type told struct {
	// kinds are those whose condition it is; empty are all.
	kinds     []string
	condition string
	// reasons are those that are meant; empty are all that do not wait for something else.
	reasons []string
	// says must be part of the message, in lower case.
	says []string
	// whenTrue is for conditions that are trouble when true.
	whenTrue bool
	// patient is for what is ordinary at first.
	patient bool

	code   string
	layer  layer
	wide   bool
	remedy string
}

// conditionTable is read from top to bottom for each condition; the first line that fits decides. Reasons are ours and
// those of upstream's providers (Cluster API v1.14, CAPV v1.15).
var conditionTable = slices.Concat(providerTable, machineTable, bootstrapTable, controlPlaneTable, policyTable, removalTable)

var providerTable = []told{
	{condition: "VCenterAvailable", reasons: []string{"LoginFailed"}, code: "VCenterLoginFailed", layer: layerProvider, wide: true,
		remedy: "Put the right user name and password into the Secret of the cluster's identity; the next try follows by itself."},
	{condition: "VCenterAvailable", reasons: []string{"CredentialsNotAvailable"}, code: "VCenterCredentialsMissing", layer: layerProvider, wide: true,
		remedy: "Create the Secret or the identity that the VSphereCluster names."},
	{condition: "VCenterAvailable", reasons: []string{"CertificateNotTrusted", "ThumbprintMismatch"}, code: "VCenterNotTrusted", layer: layerProvider, wide: true,
		remedy: "Compare the certificate with that of the vCenter, then set spec.thumbprint of the VSphereCluster."},
	{condition: "VCenterAvailable", code: "VCenterUnreachable", layer: layerProvider, wide: true,
		remedy: "See that the vCenter runs and that the management cluster reaches it: its name, port, proxy and firewall."},
	{condition: "FailureDomainsReady", code: "FailureDomainNotReady", layer: layerProvider, wide: true},
}

// provisioned is the condition of a virtual machine, ours and CAPV's.
const provisioned = "VirtualMachineProvisioned"

var machineTable = []told{
	{condition: provisioned, reasons: []string{"LoginFailed"}, code: "VCenterLoginFailed", layer: layerProvider},
	{condition: provisioned, reasons: []string{"CredentialsNotAvailable"}, code: "VCenterCredentialsMissing", layer: layerProvider},
	{condition: provisioned, reasons: []string{"CertificateNotTrusted", "ThumbprintMismatch"}, code: "VCenterNotTrusted", layer: layerProvider},
	{condition: provisioned, reasons: []string{"VCenterUnreachable"}, code: "VCenterUnreachable", layer: layerProvider},
	{condition: provisioned, says: []string{`template "`, "not found"}, code: "TemplateNotFound", layer: layerSpec,
		remedy: "Name a template that the vCenter has, in a new VSphereMachineTemplate, or bring that one there."},
	{condition: provisioned, says: []string{`network "`, "not found"}, code: "NetworkNotFound", layer: layerSpec},
	{condition: provisioned, says: []string{`folder "`, "not found"}, code: "FolderNotFound", layer: layerSpec},
	{condition: provisioned, says: []string{`datastore "`, "not found"}, code: "DatastoreNotFound", layer: layerSpec},
	{condition: provisioned, says: []string{`resource pool "`, "not found"}, code: "ResourcePoolNotFound", layer: layerSpec},
	{condition: provisioned, says: []string{`datacenter "`, "not found"}, code: "DatacenterNotFound", layer: layerSpec},
	{condition: provisioned, says: []string{`storage policy "`, "not found"}, code: "StoragePolicyNotFound", layer: layerSpec},
	{condition: provisioned, reasons: []string{"InventoryNotFound"}, code: "InventoryNotFound", layer: layerSpec},
	{condition: provisioned, reasons: []string{"TemplateVersionMismatch"}, code: "TemplateVersionMismatch", layer: layerSpec,
		remedy: "Use a template that holds the Kubernetes version of the machine, or change the machine's version."},
	{condition: provisioned, reasons: []string{"InvalidSpec", "UnsupportedField"}, code: "MachineSpecRefused", layer: layerSpec},
	{condition: provisioned, says: []string{"space"}, code: "DatastoreFull", layer: layerMachine,
		remedy: "Free space on the datastore, or name another one; the clone is tried again by itself."},
	{condition: provisioned, reasons: []string{"NameTaken"}, code: "NameTaken", layer: layerMachine},
	{condition: provisioned, reasons: []string{"VirtualMachineNotFound", "NotFoundByBIOSUUID"}, code: "VirtualMachineGone", layer: layerMachine,
		remedy: "Replace the machine: kubectl machines delete NAME --replace."},
	{condition: provisioned, reasons: []string{"VirtualMachinePoweredOff", "PoweringOnFailed"}, code: "VirtualMachineOff", layer: layerMachine,
		remedy: "Power it on in the vCenter, or replace the machine."},
	{condition: provisioned, reasons: []string{"WaitingForIPAllocation", "WaitingForIPAddress", "WaitingForNetworkAddresses"}, patient: true,
		code: "NoAddress", layer: layerMachine,
		remedy: "See that the network has a DHCP server with free addresses, and that VMware Tools run in the template."},
	{condition: provisioned, reasons: []string{"WaitingForStaticIPAllocation"}, patient: true, code: "AddressPoolExhausted", layer: layerMachine,
		remedy: "Give the pool more addresses; kubectl get ipaddressclaims shows which wait."},
	{condition: provisioned, reasons: []string{"TaskFailed", "TaskFailure", "CloningFailed"}, code: "VCenterTaskFailed", layer: layerMachine},
	{condition: provisioned, patient: true, code: "NotProvisioned", layer: layerMachine},
}

var bootstrapTable = []told{
	{condition: "CertificatesAvailable", code: "CertificatesRefused", layer: layerSpec, wide: true,
		remedy: "Mend the Secret that is named; certificates of yours are never overwritten."},
	{kinds: []string{"KubeadmConfig"}, condition: "DataSecretAvailable", code: "BootstrapConfigRefused", layer: layerSpec,
		remedy: "Mend the field that is named, in the template that the KubeadmConfig was made from."},
}

var controlPlaneTable = []told{
	{condition: "EtcdClusterHealthy", says: []string{"quorum"}, code: "EtcdQuorumLost", layer: layerControlPlane, wide: true,
		remedy: "Do not delete machines. docs/control-planes.md has the steps, and docs/etcd.md how to restore a snapshot."},
	{condition: "Available", kinds: []string{"KubeadmControlPlane"}, says: []string{"quorum"}, code: "EtcdQuorumLost", layer: layerControlPlane, wide: true,
		remedy: "Do not delete machines. docs/control-planes.md has the steps, and docs/etcd.md how to restore a snapshot."},
	{condition: "EtcdMemberHealthy", patient: true, code: "EtcdMemberUnhealthy", layer: layerControlPlane},
	{condition: "APIServerPodHealthy", patient: true, code: "APIServerUnhealthy", layer: layerControlPlane},
	{condition: "ControllerManagerPodHealthy", patient: true, code: "ControllerManagerUnhealthy", layer: layerControlPlane},
	{condition: "SchedulerPodHealthy", patient: true, code: "SchedulerUnhealthy", layer: layerControlPlane},
	{condition: "EtcdPodHealthy", patient: true, code: "EtcdPodUnhealthy", layer: layerControlPlane},
}

var policyTable = []told{
	{kinds: []string{"MachineHealthCheck"}, condition: clusterv1.MachineHealthCheckRemediationAllowedCondition, code: "HealthCheckShortCircuited", layer: layerPolicy,
		remedy: "Too many machines are unhealthy at once for automatic repair: look for what they have in common, or raise spec.remediation.triggerIf."},
	{condition: clusterv1.MachineOwnerRemediatedCondition, says: []string{"retr"}, code: "RemediationExhausted", layer: layerPolicy,
		remedy: "Machines were replaced as often as spec.remediation.maxRetry allows: mend what breaks them, then delete the machine."},
	{condition: clusterv1.MachineOwnerRemediatedCondition, reasons: []string{"CannotBeRemediated", "MachineCannotBeRemediated", "RemediationDeferred"}, patient: true,
		code: "RemediationHeldBack", layer: layerPolicy},
	{condition: lifecycle.TemplateContentChangedCondition, whenTrue: true, reasons: []string{lifecycle.TemplateContentChangedReason}, code: "TemplateChangedInPlace", layer: layerPolicy},
	{condition: clusterv1.ScalingUpCondition, whenTrue: true, says: []string{"skew"}, code: "VersionSkew", layer: layerPolicy,
		remedy: "Upgrade the control plane first, or lower the version of the machines."},
}

var removalTable = []told{
	{condition: clusterv1.DeletingCondition, whenTrue: true, reasons: []string{"DrainingNode"}, says: []string{"disruption"}, code: "DrainBlockedByBudget", layer: layerRemoval, patient: true,
		remedy: "Let the PodDisruptionBudget allow a disruption: add replicas or loosen it. spec.deletion.nodeDrainTimeoutSeconds ends the wait."},
	{condition: clusterv1.DeletingCondition, whenTrue: true, reasons: []string{"DrainingNode"}, patient: true, code: "DrainBlocked", layer: layerRemoval},
	{condition: clusterv1.DeletingCondition, whenTrue: true, reasons: []string{"WaitingForVolumeDetach"}, patient: true, code: "VolumeNotDetached", layer: layerRemoval,
		remedy: "See that the storage driver's controller runs in the workload cluster. spec.deletion.nodeVolumeDetachTimeoutSeconds ends the wait."},
	{condition: clusterv1.DeletingCondition, whenTrue: true, reasons: []string{"WaitingForPreDrainHook", "WaitingForPreTerminateHook"}, patient: true, code: "DeletionHook", layer: layerRemoval,
		remedy: "Whoever set the hook's annotation must remove it, once its work is done."},
}

// conditionsTell reads the table against every condition of every object.
func conditionsTell(f *Facts) []Finding {
	var found []Finding
	for _, o := range f.Graph.Objects {
		for _, c := range o.Conditions() {
			for _, line := range conditionTable {
				if !line.fits(o, c) {
					continue
				}
				if !line.patient || f.old(c.LastTransitionTime.Time) {
					found = append(found, line.finding(f, o, c))
				}
				break
			}
		}
	}
	return found
}

// fits tells whether a line is about this condition.
func (t *told) fits(o *graph.Object, c metav1.Condition) bool {
	trouble := c.Status == metav1.ConditionFalse
	if t.whenTrue {
		trouble = c.Status == metav1.ConditionTrue
	}
	if !trouble || c.Type != t.condition || len(t.kinds) > 0 && !slices.Contains(t.kinds, o.Kind.Kind) {
		return false
	}
	// Who is going away stops telling how it is, but for how it goes.
	if !o.GetDeletionTimestamp().IsZero() && t.layer != layerRemoval && t.layer != layerProvider {
		return false
	}
	if len(t.reasons) > 0 && !slices.Contains(t.reasons, c.Reason) || len(t.reasons) == 0 && len(t.says) == 0 && waits(c.Reason) {
		return false
	}
	message := strings.ToLower(c.Message)
	return !slices.ContainsFunc(t.says, func(part string) bool { return !strings.Contains(message, part) })
}

// waits tells whether a reason is about something else that must come first, or about an ordinary step.
func waits(reason string) bool {
	return strings.HasPrefix(reason, "WaitingFor") || strings.HasSuffix(reason, "Unknown") ||
		slices.Contains([]string{"NotProvisioned", "Configuring", "PoweringOn", "Cloning", "Deleting", "Provisioning", "InspectionFailed", "ConnectionDown"}, reason)
}

func (t *told) finding(f *Facts, o *graph.Object, c metav1.Condition) Finding {
	cause := c.Message
	if cause == "" {
		cause = "condition " + c.Type + " is " + string(c.Status) + ": " + c.Reason
	}
	found := finding(t.code, t.layer, o, cause).since(c.LastTransitionTime.Time).
		because("condition "+c.Type+" of "+reference(o).String(), string(c.Status)+" ("+c.Reason+")")
	found.Remedy = t.remedy
	// Before the first control plane answers, what ails one of its machines ails the whole cluster.
	found.wide = t.wide || t.layer < layerControlPlane && controlPlane(o) && !initializedControlPlane(f.Graph)
	return found
}

// controlPlane tells whether an object is, or belongs to, a control-plane machine.
func controlPlane(o *graph.Object) bool {
	for ; o != nil; o = o.Owner {
		if _, ok := o.GetLabels()[clusterv1.MachineControlPlaneLabel]; ok {
			return true
		}
	}
	return false
}

func initializedControlPlane(g *graph.Graph) bool {
	done := g.Spec().Status.Initialization.ControlPlaneInitialized
	return done != nil && *done
}
