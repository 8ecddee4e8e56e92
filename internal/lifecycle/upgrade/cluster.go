package upgrade

import "github.com/Masterminds/semver/v3"

// Cluster is what a plan starts from.
type Cluster struct {
	// Name is told in findings.
	Name         string
	ControlPlane ControlPlane
	// Pools are the MachineDeployments and MachinePools in the order in which they are to be replaced.
	Pools  []Pool
	Addons []Addon
	// Images are the Kubernetes versions for which machines can be made, in any order.
	Images []*semver.Version
}

// ControlPlane holds the versions of the control plane's machines. They differ while an upgrade is under way.
type ControlPlane struct {
	Oldest, Newest *semver.Version
	// Machines is how many are not of the newest version yet, Replicas how many there are.
	Machines, Replicas int32
	// Stays says that it is not moved: workers go to the version that it has.
	Stays bool
}

// Pool is a set of workers that are replaced together.
type Pool struct {
	Name string
	// Oldest and Newest are the versions of the kubelets.
	Oldest, Newest *semver.Version
	// Replicas is how many machines there are, Outdated returns how many of them are not of a version; nil counts all.
	Replicas int32
	Outdated func(version *semver.Version) int32
	// Stays says that it is not moved.
	Stays bool
}

func (p Pool) outdated(version *semver.Version) int32 {
	if p.Outdated == nil {
		return p.Replicas
	}
	return p.Outdated(version)
}

// Phase is when an add-on moves, in the words of the catalogue.
type Phase string

// Phases of an upgrade in which add-ons move.
const (
	BeforeControlPlane Phase = "before-control-plane"
	AfterControlPlane  Phase = "after-control-plane"
	AfterWorkers       Phase = "after-workers"
)

// Addon is an add-on that is installed.
type Addon struct {
	Name string
	// Version is what is installed.
	Version string
	Phase   Phase
	// Stays says that its owner pinned the version: it is checked and not moved.
	Stays bool
	// Releases are the versions that there are, newest first.
	Releases []Release
}

// Release is a version of an add-on.
type Release struct {
	Version string
	// Fits tells whether upstream states it for a Kubernetes version.
	Fits func(kubernetes *semver.Version) bool
	// UpgradesFrom tells whether it may replace an installed version in one step.
	UpgradesFrom func(installed string) bool
}

func (a Addon) release(version string) *Release {
	for i := range a.Releases {
		if a.Releases[i].Version == version {
			return &a.Releases[i]
		}
	}
	return nil
}
