package upgrade

import (
	"fmt"
	"slices"

	"github.com/Masterminds/semver/v3"
)

// kubeletSkew is how many minors a kubelet may be behind the API server.
const kubeletSkew = 3

// Workers says how often workers are replaced.
type Workers string

// How often workers are replaced when the control plane goes several minors.
const (
	// SeldomWorkers replaces them once, and more often only where the skew policy asks for it.
	SeldomWorkers Workers = "seldom"
	// EveryMinorWorkers replaces them after each leg.
	EveryMinorWorkers Workers = "every-minor"
)

// Options are what a user chooses.
type Options struct {
	Target  *semver.Version
	Workers Workers
	// Force lists checks that do not stand in the way; what they find is told all the same.
	Force []string
}

// StepKind is what a step moves.
type StepKind string

// Kinds of steps.
const (
	MoveAddon        StepKind = "addon"
	MoveControlPlane StepKind = "control-plane"
	MovePool         StepKind = "workers"
)

// Step moves one object to a version.
type Step struct {
	// Leg counts the versions of the control plane on the way. 0 is what was left undone for the one that it has.
	Leg  int      `json:"leg"`
	Kind StepKind `json:"kind"`
	// Name is the add-on's or the pool's; empty for the control plane.
	Name string `json:"name,omitempty"`
	From string `json:"from"`
	To   string `json:"to"`
	// Machines is how many machines the step replaces.
	Machines int32 `json:"machines,omitempty"`
	// Reason says why the step is there where it is not plain.
	Reason string `json:"reason,omitempty"`
}

// Plan is the way to the target.
type Plan struct {
	Steps []Step `json:"steps"`
	// Blockers are the reasons why there is no way; there are no steps then. Warnings do not stand in the way.
	Blockers []Finding `json:"blockers,omitempty"`
	Warnings []Finding `json:"warnings,omitempty"`
	// Forced are blockers that do not block, because the user said so.
	Forced []Finding `json:"forced,omitempty"`
}

// Finding is something to be dealt with.
type Finding struct {
	// Check names the rule, so that it can be overridden.
	Check string `json:"check"`
	// Object is what it is about, such as `addon "calico"`.
	Object string `json:"object"`
	// Message says what is wrong and what to do.
	Message string `json:"message"`
}

// Checks of a plan.
const (
	CheckVersion = "Version"
	CheckImage   = "MachineImage"
	CheckSkew    = "VersionSkew"
	CheckAddon   = "AddonVersion"
)

// New plans the upgrade of a cluster. The same cluster gives the same plan, and a cluster on the way the steps that are
// left: what decides must be seen in the cluster at every moment, and so the version that the control plane came from may
// not.
func New(cluster Cluster, options Options) Plan {
	p := &planner{Cluster: cluster, Options: options}
	p.checkPools()
	if legs := p.legs(); len(p.plan.Blockers) == 0 {
		p.finishLeg(legs[0], len(legs) == 1)
		for i, to := range legs[1:] {
			p.leg++
			p.allowSkew(to)
			// An add-on must do for both versions: while the control plane moves, its pods meet API servers of either.
			p.moveAddons(errand{phase: BeforeControlPlane, fit: []*semver.Version{p.ControlPlane.Oldest, to}})
			p.finishLeg(to, i == len(legs)-2)
		}
	}
	if len(p.plan.Blockers) > 0 {
		p.plan.Steps = nil
	}
	return p.plan
}

// finishLeg brings the control plane to a version and what comes after it. With the version that the control plane has,
// or is on its way to, that is what an earlier upgrade left undone.
func (p *planner) finishLeg(to *semver.Version, last bool) {
	fit := []*semver.Version{to}
	p.moveControlPlane(to)
	p.moveAddons(errand{phase: AfterControlPlane, fit: fit, newest: last, optional: p.leg == 0 && !last})
	if last || p.Workers == EveryMinorWorkers {
		for pool := range p.Pools {
			p.movePool(pool, "")
		}
	}
	p.moveAddons(errand{phase: AfterWorkers, fit: fit, newest: last, optional: p.leg == 0 && !last})
	if last {
		// They had to do for two versions; now the newest for this one will do.
		p.moveAddons(errand{phase: BeforeControlPlane, fit: fit, newest: true, optional: p.leg > 0})
	}
}

// planner walks through the upgrade: its Cluster is what will be there after the steps so far.
type planner struct {
	Cluster
	Options
	leg  int
	plan Plan
}

// must records what no user may override, because there is no plan with it.
func (p *planner) must(check, object, format string, args ...any) {
	p.plan.Blockers = append(p.plan.Blockers, Finding{check, object, fmt.Sprintf(format, args...)})
}

func (p *planner) block(check, object, format string, args ...any) {
	found, list := Finding{check, object, fmt.Sprintf(format, args...)}, &p.plan.Blockers
	if slices.Contains(p.Force, check) {
		list = &p.plan.Forced
	}
	// Several steps may need the same image.
	if !slices.Contains(*list, found) {
		*list = append(*list, found)
	}
}

func (p *planner) warn(check, object, format string, args ...any) {
	p.plan.Warnings = append(p.plan.Warnings, Finding{check, object, fmt.Sprintf(format, args...)})
}

func (p *planner) add(step Step) {
	step.Leg = p.leg
	p.plan.Steps = append(p.plan.Steps, step)
}

func (p *planner) object() string { return fmt.Sprintf("cluster %q", p.Name) }

// legs returns the versions that the control plane goes through, from the one that it has or is on its way to.
func (p *planner) legs() []*semver.Version {
	at, target := p.ControlPlane.Newest, p.Target
	switch {
	case target.LessThan(at):
		p.must(CheckVersion, p.object(), "the control plane is %s; %s is older, and a control plane cannot go back: choose %s or newer", v(at), v(target), v(at))
		return nil
	case p.ControlPlane.Stays && !at.Equal(target):
		p.must(CheckVersion, p.object(), "the control plane is %s and is not moved by this upgrade: workers can go to %s", v(at), v(at))
		return nil
	case target.Major() != at.Major():
		p.must(CheckVersion, p.object(), "the control plane is %s; there is no way known to another major version, %s", v(at), v(target))
		return nil
	}
	legs := []*semver.Version{at}
	for minor := at.Minor() + 1; minor < target.Minor(); minor++ {
		between := p.newestImage(at.Major(), minor)
		if between == nil {
			p.must(CheckImage, p.object(), "the way from %s to %s leads through v%d.%d, and there is no machine image for it: make one, so that no minor is skipped",
				v(at), v(target), at.Major(), minor)
			continue
		}
		legs = append(legs, between)
	}
	if !at.Equal(target) {
		legs = append(legs, target)
	}
	return legs
}

func (p *planner) newestImage(major, minor uint64) *semver.Version {
	var newest *semver.Version
	for _, image := range p.Images {
		if image.Major() == major && image.Minor() == minor && image.Prerelease() == "" && (newest == nil || newest.LessThan(image)) {
			newest = image
		}
	}
	return newest
}

// needImage blocks where no machine of a version can be made.
func (p *planner) needImage(version *semver.Version) {
	if slices.ContainsFunc(p.Images, version.Equal) {
		return
	}
	p.block(CheckImage, p.object(), "there is no machine image for %s: make one, or say how its images are named", v(version))
}

// checkPools blocks where kubelets are newer than an API server.
func (p *planner) checkPools() {
	server := p.ControlPlane.Oldest
	for _, pool := range p.Pools {
		if server.LessThan(pool.Newest) {
			p.block(CheckSkew, fmt.Sprintf("workers %q", pool.Name), "kubelets of %s are newer than the control plane, %s, which no Kubernetes allows: "+
				"set their version back to %s", v(pool.Newest), v(server), v(server))
		}
	}
}

// allowSkew replaces the workers that the control plane would leave too far behind.
func (p *planner) allowSkew(to *semver.Version) {
	for i, pool := range p.Pools {
		switch {
		case behind(pool.Oldest, to) <= kubeletSkew:
		case pool.Stays:
			p.block(CheckSkew, fmt.Sprintf("workers %q", pool.Name), "kubelets of %s may not meet an API server of %s, at most %d minors: move them in this upgrade too", v(pool.Oldest), v(to), kubeletSkew)
		default:
			p.movePool(i, fmt.Sprintf("kubelets of %s may not meet an API server of %s: at most %d minors", v(pool.Oldest), v(to), kubeletSkew))
		}
	}
}

// behind counts the minors between a version and an API server.
func behind(version, server *semver.Version) int {
	return int(server.Minor()) - int(version.Minor())
}

func (p *planner) moveControlPlane(to *semver.Version) {
	from := p.ControlPlane
	if from.Oldest.Equal(to) && from.Newest.Equal(to) {
		return
	}
	machines := from.Replicas
	if from.Newest.Equal(to) {
		machines = from.Machines
	}
	p.needImage(to)
	p.add(Step{Kind: MoveControlPlane, From: v(from.Oldest), To: v(to), Machines: machines})
	p.ControlPlane = ControlPlane{Oldest: to, Newest: to, Replicas: from.Replicas, Stays: from.Stays}
}

// movePool replaces the machines of a pool by ones of the control plane's version: kubeadm joins no other.
func (p *planner) movePool(i int, reason string) {
	pool, to := p.Pools[i], p.ControlPlane.Oldest
	if pool.Stays || pool.Oldest.Equal(to) && pool.Newest.Equal(to) {
		return
	}
	p.needImage(to)
	p.add(Step{Kind: MovePool, Name: pool.Name, From: v(pool.Oldest), To: v(to), Machines: pool.outdated(to), Reason: reason})
	p.Pools = slices.Clone(p.Pools)
	p.Pools[i] = Pool{Name: pool.Name, Oldest: to, Newest: to, Replicas: pool.Replicas}
}

// v writes a version as Kubernetes does.
func v(version *semver.Version) string { return "v" + version.String() }
