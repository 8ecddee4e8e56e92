package v1beta2

import clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

// Conditions of a VSphereCluster. Ready sums up the others.
const (
	// VCenterAvailableCondition is true while vCenter answers and takes the credentials.
	VCenterAvailableCondition = "VCenterAvailable"
	// FailureDomainsReadyCondition tells whether the selected deployment zones can be used.
	FailureDomainsReadyCondition = "FailureDomainsReady"
	// ControlPlaneEndpointSetCondition is true once spec.controlPlaneEndpoint has a host and a port.
	ControlPlaneEndpointSetCondition = "ControlPlaneEndpointSet"
)

// Conditions of a VSphereMachine. Ready sums up the others.
const (
	// VirtualMachineProvisionedCondition is true while the virtual machine exists, is on and has its addresses.
	VirtualMachineProvisionedCondition = "VirtualMachineProvisioned"
	// CloneModeHonouredCondition is false where the template forced another clone than the one asked for,
	// or where a linked clone cannot have the disk size asked for.
	CloneModeHonouredCondition = "CloneModeHonoured"
	// GuestSoftPowerOffSucceededCondition follows a guest that was asked to shut down.
	GuestSoftPowerOffSucceededCondition = "GuestSoftPowerOffSucceeded"
)

// Reasons of VCenterAvailable, and of VirtualMachineProvisioned when vCenter stands in the way.
const (
	VCenterUnreachableReason      = "VCenterUnreachable"
	CertificateNotTrustedReason   = "CertificateNotTrusted"
	ThumbprintMismatchReason      = "ThumbprintMismatch"
	LoginFailedReason             = "LoginFailed"
	CredentialsNotAvailableReason = "CredentialsNotAvailable"
)

// Reasons of VirtualMachineProvisioned.
const (
	WaitingForClusterInfrastructureReadyReason = clusterv1.WaitingForClusterInfrastructureReadyReason
	WaitingForBootstrapDataReason              = clusterv1.WaitingForBootstrapDataReason
	WaitingForCloneSlotReason                  = "WaitingForCloneSlot"
	WaitingForCloneReason                      = "WaitingForClone"
	ConfiguringReason                          = "Configuring"
	PoweringOnReason                           = "PoweringOn"
	WaitingForIPAllocationReason               = "WaitingForIPAllocation"
	InventoryNotFoundReason                    = "InventoryNotFound"
	InvalidSpecReason                          = "InvalidSpec"
	UnsupportedFieldReason                     = "UnsupportedField"
	TemplateVersionMismatchReason              = "TemplateVersionMismatch"
	TaskFailedReason                           = "TaskFailed"
	NameTakenReason                            = "NameTaken"
	VirtualMachineNotFoundReason               = "VirtualMachineNotFound"
	VirtualMachinePoweredOffReason             = "VirtualMachinePoweredOff"
)
