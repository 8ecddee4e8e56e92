package v1alpha1

// Annotations.
const (
	// ApprovedAnnotation on a ClusterUpgrade lists, with commas, the pauses of spec.pauseBefore that a person approved.
	ApprovedAnnotation = "lifecycle.millwright.dev/approved"

	// RetriedAnnotation on a ClusterUpgrade has it look at once at what blocks it or what failed; its value is the time.
	RetriedAnnotation = "lifecycle.millwright.dev/retried"

	// BeforeAnnotation on a control plane, MachineDeployment or AddonRelease keeps, in JSON, the version and the machine
	// template that it had before an upgrade moved it, until the move is over.
	BeforeAnnotation = "lifecycle.millwright.dev/before-upgrade"

	// HaltedByAnnotation on a control plane or MachineDeployment names the ClusterUpgrade that paused it; on an AddonRelease
	// the one that holds its version.
	HaltedByAnnotation = "lifecycle.millwright.dev/halted-by"

	// TemplateOfAnnotation on a machine template that an upgrade made names the template that it was first copied from.
	TemplateOfAnnotation = "lifecycle.millwright.dev/template-of"

	// HistoryAnnotation on a Cluster holds, in JSON, its last upgrades, the newest first.
	HistoryAnnotation = "lifecycle.millwright.dev/upgrade-history"
)

// MadeByUpgradeLabel is on every machine template that an upgrade made, so that it can be collected.
const MadeByUpgradeLabel = "lifecycle.millwright.dev/made-by-upgrade"

// ClusterUpgradeFinalizer keeps a ClusterUpgrade until what it halted goes on.
const ClusterUpgradeFinalizer = "lifecycle.millwright.dev/clusterupgrade"

// ClusterUpgradeSpec is what an upgrade is to reach, and how.
type ClusterUpgradeSpec struct {
	// clusterName is the Cluster, in the same namespace.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="clusterName cannot be changed: make another ClusterUpgrade"
	ClusterName string `json:"clusterName,omitempty"`

	// version is the Kubernetes version to reach, such as v1.37.2.
	// +required
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`
	Version string `json:"version,omitempty"`

	// via are versions to go by where the way leads over several minors. For a minor that is not listed, it is the newest
	// version that there is a machine image for.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:items:Pattern=`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`
	Via []string `json:"via,omitempty"`

	// scope is what is upgraded: All, ControlPlane or Workers; default All. With Workers only the MachineDeployments and the
	// add-ons that go with them are moved, to the version that the control plane has.
	// +optional
	// +kubebuilder:default=All
	Scope Scope `json:"scope,omitempty"`

	// images says how the machine image of a version is found. By default the version in the name of the image that the
	// machines have now is replaced.
	// +optional
	Images Images `json:"images,omitzero"`

	// workers says in which order the MachineDeployments are moved, and how often.
	// +optional
	Workers Workers `json:"workers,omitzero"`

	// addons says what becomes of add-ons whose version is "auto": Follow moves each in its place among the steps, Stay holds
	// them where they are until the upgrade is over; default Follow.
	// +optional
	// +kubebuilder:default=Follow
	Addons AddonPolicy `json:"addons,omitempty"`

	// pauseBefore lists the phases before which the upgrade waits for a person: the annotation
	// lifecycle.millwright.dev/approved with the phase's name lets it go on.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=2
	PauseBefore []Phase `json:"pauseBefore,omitempty"`

	// paused holds the upgrade: no step begins, and the rollouts that it began make no further machine.
	// +optional
	Paused *bool `json:"paused,omitempty"`

	// abort ends the upgrade: MachineDeployments whose move is not over go back to what they had before. A control plane
	// whose move has begun is finished: Kubernetes has no way back.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self || !oldSelf",message="an aborted upgrade cannot go on: make another ClusterUpgrade"
	Abort *bool `json:"abort,omitempty"`

	// windows are the times in which machines may be replaced; without any, they may at all times.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Windows []MaintenanceWindow `json:"windows,omitempty"`

	// onFailure says what happens when a step fails: Pause, so that a person can look, or RollBack, which gives the
	// MachineDeployments of the step what they had before; default Pause.
	// +optional
	// +kubebuilder:default=Pause
	OnFailure FailurePolicy `json:"onFailure,omitempty"`

	// machineTimeoutSeconds is how long a new machine may take to become a ready Node before its step has failed; default
	// 1200 (20 minutes).
	// +optional
	// +kubebuilder:default=1200
	// +kubebuilder:validation:Minimum=30
	MachineTimeoutSeconds *int32 `json:"machineTimeoutSeconds,omitempty"`

	// force lists preflight checks, by name, that do not stand in the way. The status keeps what they found.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=64
	Force []string `json:"force,omitempty"`
}

// Scope is what an upgrade moves.
// +kubebuilder:validation:Enum=All;ControlPlane;Workers
type Scope string

// Scopes.
const (
	ScopeAll          Scope = "All"
	ScopeControlPlane Scope = "ControlPlane"
	ScopeWorkers      Scope = "Workers"
)

// AddonPolicy says whether add-ons move with the Kubernetes version.
// +kubebuilder:validation:Enum=Follow;Stay
type AddonPolicy string

// Policies of add-ons.
const (
	AddonsFollow AddonPolicy = "Follow"
	AddonsStay   AddonPolicy = "Stay"
)

// Phase is a part of an upgrade that can be waited before.
// +kubebuilder:validation:Enum=ControlPlane;Workers
type Phase string

// Phases.
const (
	PhaseControlPlane Phase = "ControlPlane"
	PhaseWorkers      Phase = "Workers"
)

// FailurePolicy says what happens when a step fails.
// +kubebuilder:validation:Enum=Pause;RollBack
type FailurePolicy string

// Policies of failure.
const (
	FailurePause    FailurePolicy = "Pause"
	FailureRollBack FailurePolicy = "RollBack"
)

// Images says how the machine image of a Kubernetes version is found.
// +kubebuilder:validation:MinProperties=1
type Images struct {
	// pattern is the name of the image, a Go template of the version: ubuntu-2404-kube-{{.Version}} (.Version is v1.37.2,
	// .Number 1.37.2).
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Pattern string `json:"pattern,omitempty"`

	// field is the path of the image's name in the machine template; default spec.template.spec.template of a
	// VSphereMachineTemplate.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Field string `json:"field,omitempty"`

	// templates name machine templates that exist already, and go before the pattern.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=200
	Templates []MachineTemplate `json:"templates,omitempty"`
}

// MachineTemplate is the machine template of one object for one version.
type MachineTemplate struct {
	// for is the MachineDeployment; empty means the control plane.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	For string `json:"for,omitempty"`

	// version is the Kubernetes version that the template is for; empty means spec.version.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Version string `json:"version,omitempty"`

	// name of the template, of the same kind and in the same namespace as the present one.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
}

// Workers says how MachineDeployments are moved.
// +kubebuilder:validation:MinProperties=1
type Workers struct {
	// order lists MachineDeployments that go first, in this order; the others follow by name.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=200
	// +kubebuilder:validation:items:MaxLength=253
	Order []string `json:"order,omitempty"`

	// only lists the MachineDeployments that are moved; default all.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=200
	// +kubebuilder:validation:items:MaxLength=253
	Only []string `json:"only,omitempty"`

	// maxConcurrent is how many MachineDeployments are moved at once; default 1.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxConcurrent *int32 `json:"maxConcurrent,omitempty"`

	// strategy says how often workers are replaced on a way over several minors: Seldom, as the version skew policy allows,
	// or EveryMinor; default Seldom.
	// +optional
	Strategy WorkerStrategy `json:"strategy,omitempty"`
}

// WorkerStrategy says how often workers are replaced.
// +kubebuilder:validation:Enum=Seldom;EveryMinor
type WorkerStrategy string

// Strategies of workers.
const (
	WorkersSeldom     WorkerStrategy = "Seldom"
	WorkersEveryMinor WorkerStrategy = "EveryMinor"
)

// MaintenanceWindow is a time that comes again.
type MaintenanceWindow struct {
	// schedule is when the window opens, in the five fields of cron: "0 22 * * 6" is Saturdays at ten in the evening.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Schedule string `json:"schedule,omitempty"`

	// durationMinutes is how long it stays open.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10080
	DurationMinutes int32 `json:"durationMinutes,omitempty"`

	// timeZone is a name of the time zone database, such as Europe/Berlin; default UTC.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	TimeZone string `json:"timeZone,omitempty"`
}
