package v1beta2

import "k8s.io/apimachinery/pkg/api/resource"

// CloneMode is the way in which a template becomes a virtual machine.
// +kubebuilder:validation:Enum=fullClone;linkedClone
type CloneMode string

const (
	// FullClone copies the disks of the template.
	FullClone CloneMode = "fullClone"
	// LinkedClone shares the disks of a snapshot of the template: faster, and the disks cannot grow.
	LinkedClone CloneMode = "linkedClone"
)

// PowerOffMode is the way in which a virtual machine is switched off before it is destroyed.
// +kubebuilder:validation:Enum=hard;soft;trySoft
type PowerOffMode string

const (
	// PowerOffHard cuts the power.
	PowerOffHard PowerOffMode = "hard"
	// PowerOffSoft asks the guest to shut down and waits for it, for ever if need be.
	PowerOffSoft PowerOffMode = "soft"
	// PowerOffTrySoft asks the guest and cuts the power when it does not answer in time.
	PowerOffTrySoft PowerOffMode = "trySoft"
)

// OS is the family of the guest's operating system, Linux or Windows.
type OS string

const (
	// Linux is the default.
	Linux OS = "Linux"
	// Windows guests read the same guestinfo through cloudbase-init.
	Windows OS = "Windows"
)

// FtEncryptionMode is the encryption of fault tolerance traffic.
// +kubebuilder:validation:Enum=ftEncryptionDisabled;ftEncryptionOpportunistic;ftEncryptionRequired
type FtEncryptionMode string

// MigrateEncryption is the encryption of vMotion.
// +kubebuilder:validation:Enum=disabled;opportunistic;required
type MigrateEncryption string

// ProvisioningMode is the way in which a data disk takes its space on the datastore.
// +kubebuilder:validation:Enum=Thin;Thick;EagerlyZeroed
type ProvisioningMode string

// VirtualMachineCloneSpec says what a virtual machine is cloned from, where it goes and what it gets.
// Objects of the vCenter inventory are given by name, inventory path, managed object reference
// ("VirtualMachine:vm-12") or managed object id ("vm-12").
type VirtualMachineCloneSpec struct {
	// template is the virtual machine or template to clone.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Template string `json:"template,omitempty"`

	// cloneMode is linkedClone or fullClone. A linked clone needs a snapshot on the template; without one, and also
	// when this field is empty, the clone becomes a full one, which the condition CloneModeHonoured tells.
	// +optional
	CloneMode CloneMode `json:"cloneMode,omitempty"`

	// snapshot names the snapshot of the template that a linked clone builds on; its current one when empty.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Snapshot string `json:"snapshot,omitempty"`

	// server is the host name or address of vCenter, with an optional port. Empty: the server of the VSphereCluster.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Server string `json:"server,omitempty"`

	// thumbprint is the SHA-1 or SHA-256 sum of the certificate of server, where that is another vCenter than the
	// VSphereCluster's. When set, only that certificate is accepted; when empty, the system's roots must trust it. For
	// the VSphereCluster's own vCenter its thumbprint counts.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Thumbprint string `json:"thumbprint,omitempty"`

	// datacenter holds everything else that is named here. Empty or "*": the only datacenter.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Datacenter string `json:"datacenter,omitempty"`

	// folder is the folder that the virtual machine is created in. Empty: the datacenter's own.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Folder string `json:"folder,omitempty"`

	// datastore holds the disks. Empty: one that suits the storage policy, else the only one.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Datastore string `json:"datastore,omitempty"`

	// storagePolicyName is the storage policy of the virtual machine. Empty: none.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	StoragePolicyName string `json:"storagePolicyName,omitempty"`

	// resourcePool is where the virtual machine runs. Empty: the only one.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	ResourcePool string `json:"resourcePool,omitempty"`

	// network lists the network devices and routes.
	// +required
	Network NetworkSpec `json:"network,omitzero"`

	// numCPUs is the number of virtual processors. Empty: as in the template.
	// +optional
	// +kubebuilder:validation:Minimum=2
	NumCPUs int32 `json:"numCPUs,omitempty"`

	// numCoresPerSocket divides the processors among sockets. Empty: as in the template; 0: vCenter decides at power-on
	// (vSphere 8 and later).
	// +optional
	// +kubebuilder:validation:Minimum=0
	NumCoresPerSocket *int32 `json:"numCoresPerSocket,omitempty"`

	// resources are reservations, limits and shares of processor and memory.
	// +optional
	Resources VirtualMachineResources `json:"resources,omitzero"`

	// memoryMiB is the memory in MiB. Empty: as in the template.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MemoryMiB int64 `json:"memoryMiB,omitempty"`

	// diskGiB is the size of the first disk in GiB. It can be larger than in the template, never smaller; a linked
	// clone keeps the template's. Empty: as in the template.
	// +optional
	// +kubebuilder:validation:Minimum=1
	DiskGiB int32 `json:"diskGiB,omitempty"`

	// additionalDisksGiB are the sizes in GiB of the template's further disks.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	AdditionalDisksGiB []int32 `json:"additionalDisksGiB,omitempty"`

	// customVMXKeys are advanced options of the virtual machine (extraConfig).
	// +optional
	CustomVMXKeys map[string]string `json:"customVMXKeys,omitempty"`

	// tagIDs are tags to attach, as URNs.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	TagIDs []string `json:"tagIDs,omitempty"`

	// pciDevices are PCI devices and vGPUs to pass through.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	PciDevices []PCIDeviceSpec `json:"pciDevices,omitempty"`

	// os is the family of the guest's operating system: Linux (default) or Windows.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	OS OS `json:"os,omitempty"`

	// hardwareVersion is the virtual hardware version, such as vmx-19. Empty: as in the template.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	HardwareVersion string `json:"hardwareVersion,omitempty"`

	// dataDisks are disks that the template does not have.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=29
	DataDisks []VSphereDisk `json:"dataDisks,omitempty"`

	// nestedHV exposes hardware-assisted virtualization to the guest. Empty: as in the template.
	// +optional
	NestedHV *bool `json:"nestedHV,omitempty"`

	// ftEncryptionMode is the encryption of fault tolerance traffic. Empty: as in the template.
	// +optional
	FtEncryptionMode FtEncryptionMode `json:"ftEncryptionMode,omitempty"`

	// migrateEncryption is the encryption of vMotion. Empty: as in the template.
	// +optional
	MigrateEncryption MigrateEncryption `json:"migrateEncryption,omitempty"`
}

// VirtualMachineResources are reservations, limits and shares of processor and memory.
// +kubebuilder:validation:MinProperties=1
type VirtualMachineResources struct {
	// requests are reserved for the virtual machine.
	// +optional
	Requests VirtualMachineResourceSpec `json:"requests,omitzero"`

	// limits are never exceeded.
	// +optional
	Limits VirtualMachineResourceSpec `json:"limits,omitzero"`

	// shares weigh the virtual machine against its neighbours when the host is busy.
	// +optional
	Shares VirtualMachineResourceShares `json:"shares,omitzero"`
}

// VirtualMachineResourceSpec is an amount of processor and memory.
// +kubebuilder:validation:MinProperties=1
type VirtualMachineResourceSpec struct {
	// cpu is in hertz, rounded up to a MHz: 2G is 2000 MHz.
	// +optional
	CPU resource.Quantity `json:"cpu,omitzero"`

	// memory is in bytes, rounded up to a MiB.
	// +optional
	Memory resource.Quantity `json:"memory,omitzero"`
}

// VirtualMachineResourceShares are numbers of shares.
// +kubebuilder:validation:MinProperties=1
type VirtualMachineResourceShares struct {
	// cpu is the number of processor shares.
	// +optional
	// +kubebuilder:validation:Minimum=1
	CPU int32 `json:"cpu,omitempty"`

	// memory is the number of memory shares.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Memory int32 `json:"memory,omitempty"`
}

// VSphereDisk is a disk that the template does not have.
type VSphereDisk struct {
	// name tells the disk from the others.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Name string `json:"name,omitempty"`

	// sizeGiB is the size in GiB.
	// +required
	// +kubebuilder:validation:Minimum=1
	SizeGiB int32 `json:"sizeGiB,omitempty"`

	// provisioningMode is Thin, Thick or EagerlyZeroed. Empty: as the storage policy says.
	// +optional
	ProvisioningMode ProvisioningMode `json:"provisioningMode,omitempty"`
}

// PCIDeviceSpec is a PCI device, by device and vendor id, or a vGPU, by profile.
type PCIDeviceSpec struct {
	// deviceId is the PCI device id; not together with vGPUProfile.
	// +optional
	DeviceID *int32 `json:"deviceId,omitempty"`

	// vendorId is the PCI vendor id; not together with vGPUProfile.
	// +optional
	VendorID *int32 `json:"vendorId,omitempty"`

	// vGPUProfile is the name of a vGPU profile; not together with deviceId and vendorId.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	VGPUProfile string `json:"vGPUProfile,omitempty"`

	// customLabel picks among equal devices by their hardware label.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	CustomLabel string `json:"customLabel,omitempty"`
}
