package v1beta2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

const (
	// MachineFinalizer keeps a VSphereMachine until its virtual machine is destroyed.
	MachineFinalizer = "vspheremachine.infrastructure.cluster.x-k8s.io"

	// DefaultGuestSoftPowerOffTimeoutSeconds is how long trySoft waits for the guest.
	DefaultGuestSoftPowerOffTimeoutSeconds = 300
)

// VSphereMachineSpec is the desired state of a VSphereMachine.
type VSphereMachineSpec struct {
	VirtualMachineCloneSpec `json:",inline"`

	// providerID is vsphere:// followed by the BIOS UUID of the virtual machine. The controller sets it before the
	// machine is powered on for the first time; from then on the machine is never cloned anew.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	ProviderID string `json:"providerID,omitempty"`

	// powerOffMode is how the virtual machine is switched off before it is destroyed: hard (default), soft or trySoft.
	// +optional
	PowerOffMode PowerOffMode `json:"powerOffMode,omitempty"`

	// guestSoftPowerOffTimeoutSeconds is how long trySoft waits for the guest, 300 when empty.
	// +optional
	// +kubebuilder:validation:Minimum=1
	GuestSoftPowerOffTimeoutSeconds int32 `json:"guestSoftPowerOffTimeoutSeconds,omitempty"`

	// namingStrategy makes the name of the virtual machine, which is the Machine's name when it is empty.
	// +optional
	NamingStrategy VSphereVMNamingStrategy `json:"namingStrategy,omitzero"`
}

// VSphereVMNamingStrategy makes the name of a virtual machine.
// +kubebuilder:validation:MinProperties=1
type VSphereVMNamingStrategy struct {
	// template is a Go template with the field .machine.name and the functions trimSuffix and trunc. A result over 63
	// characters is cut.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Template string `json:"template,omitempty"`
}

// VSphereMachineStatus is the observed state of a VSphereMachine.
type VSphereMachineStatus struct {
	// conditions are Ready, VirtualMachineProvisioned, CloneModeHonoured, GuestSoftPowerOffSucceeded and Paused.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// initialization is part of the Cluster API contract.
	// +optional
	Initialization VSphereMachineInitializationStatus `json:"initialization,omitzero"`

	// addresses are the host name and the addresses of the virtual machine.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	Addresses []clusterv1.MachineAddress `json:"addresses,omitempty"`

	// failureDomain is the VSphereDeploymentZone that the virtual machine was placed in.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	FailureDomain string `json:"failureDomain,omitempty"`

	// network is what is known of each network device.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	Network []NetworkStatus `json:"network,omitempty"`

	// clone is the clone that was decided on. It is written before vCenter is asked, so that a virtual machine that is
	// being made is found again whatever happens in between.
	// +optional
	Clone *VirtualMachineCloneStatus `json:"clone,omitempty"`

	// taskRef is the managed object id of the clone task while it is not known to have ended.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	TaskRef string `json:"taskRef,omitempty"`

	// vmRef is the managed object id of the virtual machine.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	VMRef string `json:"vmRef,omitempty"`
}

// VirtualMachineCloneStatus is a clone that was decided on.
type VirtualMachineCloneStatus struct {
	// name of the virtual machine.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// folder is the managed object id of its folder.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Folder string `json:"folder,omitempty"`

	// template is the managed object id of the template.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Template string `json:"template,omitempty"`

	// mode is how the clone is really made.
	// +required
	Mode CloneMode `json:"mode,omitempty"`
}

// VSphereMachineInitializationStatus tells how far the first provisioning is.
// +kubebuilder:validation:MinProperties=1
type VSphereMachineInitializationStatus struct {
	// provisioned is true once the virtual machine was on and had its addresses; it never goes back.
	// +optional
	Provisioned *bool `json:"provisioned,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=vspheremachines,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".metadata.labels['cluster\\.x-k8s\\.io/cluster-name']",description="Cluster"
// +kubebuilder:printcolumn:name="Provider ID",type="string",JSONPath=".spec.providerID",description="Provider id",priority=10
// +kubebuilder:printcolumn:name="Template",type="string",JSONPath=".spec.template",description="Template that the virtual machine is cloned from",priority=10
// +kubebuilder:printcolumn:name="Paused",type="string",JSONPath=`.status.conditions[?(@.type=="Paused")].status`,description="Reconciliation paused",priority=10
// +kubebuilder:printcolumn:name="Provisioned",type="string",JSONPath=".status.initialization.provisioned",description="The virtual machine was on and had its addresses"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Ready condition"
// +kubebuilder:printcolumn:name="Reason",type="string",JSONPath=`.status.conditions[?(@.type=="VirtualMachineProvisioned")].reason`,description="What the virtual machine is waiting for",priority=1
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"

// VSphereMachine is the virtual machine of one Machine.
type VSphereMachine struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +required
	Spec VSphereMachineSpec `json:"spec,omitzero"`

	// status is the observed state.
	// +optional
	Status VSphereMachineStatus `json:"status,omitzero"`
}

// GetConditions returns status.conditions.
func (m *VSphereMachine) GetConditions() []metav1.Condition { return m.Status.Conditions }

// SetConditions replaces status.conditions.
func (m *VSphereMachine) SetConditions(conditions []metav1.Condition) {
	m.Status.Conditions = conditions
}

// +kubebuilder:object:root=true

// VSphereMachineList is a list of VSphereMachines.
type VSphereMachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []VSphereMachine `json:"items"`
}

// VSphereMachineTemplateSpec is the desired state of a VSphereMachineTemplate.
type VSphereMachineTemplateSpec struct {
	// template is what VSphereMachines are made from.
	// +required
	Template VSphereMachineTemplateResource `json:"template,omitzero"`
}

// VSphereMachineTemplateResource is what VSphereMachines are made from.
type VSphereMachineTemplateResource struct {
	// metadata is copied to the VSphereMachines.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitzero"`

	// spec is copied to the VSphereMachines.
	// +optional
	Spec VSphereMachineSpec `json:"spec,omitzero"`
}

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=vspheremachinetemplates,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Template",type="string",JSONPath=".spec.template.spec.template",description="Template that the virtual machines are cloned from"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"

// VSphereMachineTemplate is a template of VSphereMachines.
type VSphereMachineTemplate struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +optional
	Spec VSphereMachineTemplateSpec `json:"spec,omitzero"`
}

// +kubebuilder:object:root=true

// VSphereMachineTemplateList is a list of VSphereMachineTemplates.
type VSphereMachineTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []VSphereMachineTemplate `json:"items"`
}
