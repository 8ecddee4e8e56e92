package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Conditions of a ClusterUpgrade.
const (
	// PreflightPassedCondition tells whether anything stands in the way of the plan.
	PreflightPassedCondition = "PreflightPassed"

	// ProgressingCondition is true while steps are carried out.
	ProgressingCondition = "Progressing"

	// CompletedCondition is true once the cluster is what the upgrade asks for.
	CompletedCondition = "Completed"
)

// Reasons of the conditions.
const (
	PassedReason           = "Passed"
	BlockedReason          = "Blocked"
	StepRunningReason      = "StepRunning"
	StepFailedReason       = "StepFailed"
	PausedReason           = "Paused"
	ApprovalNeededReason   = "ApprovalNeeded"
	OutsideWindowReason    = "OutsideMaintenanceWindow"
	WaitingForOthersReason = "OtherUpgradeUnderWay"
	AbortedReason          = "Aborted"
	AbortingReason         = "Aborting"
	UpToDateReason         = "UpToDate"
	NotDoneReason          = "NotDone"
	ClusterNotFoundReason  = "ClusterNotFound"
	ConnectingReason       = "Connecting"
)

// ClusterUpgradeStatus is what is known of an upgrade.
type ClusterUpgradeStatus struct {
	// conditions: PreflightPassed, Progressing, Completed.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// phase sums the conditions up.
	// +optional
	Phase UpgradePhase `json:"phase,omitempty"`

	// message says in one line what is being waited for, and since is when that began.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Message string `json:"message,omitempty"`
	// +optional
	Since *metav1.Time `json:"since,omitempty"`

	// fromVersion is what the control plane had when the upgrade began.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	FromVersion string `json:"fromVersion,omitempty"`

	// startTime is when the first step began, completionTime when the last was over.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// steps are the plan: what is done first, then what is left, in order.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	Steps []Step `json:"steps,omitempty"`

	// findings are what the preflight found.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=200
	Findings []Finding `json:"findings,omitempty"`
}

// UpgradePhase sums an upgrade up.
type UpgradePhase string

// Phases of an upgrade's life.
const (
	UpgradePending   UpgradePhase = "Pending"
	UpgradeBlocked   UpgradePhase = "Blocked"
	UpgradeRunning   UpgradePhase = "Running"
	UpgradePaused    UpgradePhase = "Paused"
	UpgradeFailed    UpgradePhase = "Failed"
	UpgradeAborting  UpgradePhase = "Aborting"
	UpgradeAborted   UpgradePhase = "Aborted"
	UpgradeCompleted UpgradePhase = "Completed"
)

// Over tells whether an upgrade does nothing more.
func (p UpgradePhase) Over() bool { return p == UpgradeAborted || p == UpgradeCompleted }

// Step moves one object to a version.
type Step struct {
	// leg counts the versions of the control plane on the way, from 1; 0 is what an earlier upgrade left undone.
	// +optional
	Leg int32 `json:"leg,omitempty"`

	// kind is control-plane, workers or addon; name is the MachineDeployment or the add-on.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Kind string `json:"kind,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// from and to are versions: of Kubernetes, or of the add-on.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	From string `json:"from,omitempty"`
	// +required
	// +kubebuilder:validation:MaxLength=128
	To string `json:"to,omitempty"`

	// machines is how many machines the step replaces, and done how many of them are replaced.
	// +optional
	Machines int32 `json:"machines,omitempty"`
	// +optional
	Done int32 `json:"done,omitempty"`

	// state of the step.
	// +required
	State StepState `json:"state,omitempty"`

	// reason says why the step is there, or what it waits for.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Reason string `json:"reason,omitempty"`

	// startTime and completionTime are when it was seen to begin and to be over.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
}

// StepState is how far a step is.
// +kubebuilder:validation:Enum=Pending;Running;Failed;Done;Undone
type StepState string

// States of a step.
const (
	StepPending StepState = "Pending"
	StepRunning StepState = "Running"
	StepFailed  StepState = "Failed"
	StepDone    StepState = "Done"
	// StepUndone is a step that was taken back, or that an aborted upgrade did not come to.
	StepUndone StepState = "Undone"
)

// Severity says whether a finding stands in the way.
// +kubebuilder:validation:Enum=Blocker;Warning;Forced
type Severity string

// Severities.
const (
	Blocker Severity = "Blocker"
	Warning Severity = "Warning"
	// Forced is a blocker that spec.force overrides.
	Forced Severity = "Forced"
)

// Finding is something that the preflight found.
type Finding struct {
	// check names the rule, for spec.force.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Check string `json:"check,omitempty"`

	// severity says whether it stands in the way.
	// +required
	Severity Severity `json:"severity,omitempty"`

	// object is what it is about.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Object string `json:"object,omitempty"`

	// message says what is wrong and what to do.
	// +required
	// +kubebuilder:validation:MaxLength=4096
	Message string `json:"message,omitempty"`
}

// ClusterUpgrade brings a whole cluster to a Kubernetes version.
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,shortName=cup,categories=cluster-api
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec.clusterName`
// +kubebuilder:printcolumn:name="To",type=string,JSONPath=`.spec.version`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`
type ClusterUpgrade struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec ClusterUpgradeSpec `json:"spec,omitzero"`
	// +optional
	Status ClusterUpgradeStatus `json:"status,omitzero"`
}

// GetConditions returns the conditions of the status.
func (u *ClusterUpgrade) GetConditions() []metav1.Condition { return u.Status.Conditions }

// SetConditions replaces the conditions of the status.
func (u *ClusterUpgrade) SetConditions(list []metav1.Condition) { u.Status.Conditions = list }

// ClusterUpgradeList is a list of ClusterUpgrades.
// +kubebuilder:object:root=true
type ClusterUpgradeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterUpgrade `json:"items"`
}
