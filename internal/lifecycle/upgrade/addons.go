package upgrade

import (
	"fmt"
	"slices"

	"github.com/Masterminds/semver/v3"
)

// errand is what the add-ons of a phase are moved for.
type errand struct {
	phase Phase
	// fit are the Kubernetes versions that an add-on must do for.
	fit []*semver.Version
	// newest asks for the newest that fits, not only for one that fits.
	newest bool
	// optional says that nothing is lost where there is no way.
	optional bool
}

// moveAddons moves the add-ons of a phase.
func (p *planner) moveAddons(e errand) {
	for i, addon := range p.Addons {
		if addon.Phase == e.phase {
			p.moveAddon(i, e)
		}
	}
}

func (p *planner) moveAddon(i int, e errand) {
	addon, to := p.Addons[i], e.fit[len(e.fit)-1]
	object := fmt.Sprintf("addon %q", addon.Name)
	installed := addon.release(addon.Version)
	fitsNow := installed != nil && fitsAll(*installed, e.fit)
	if fitsNow && (!e.newest || addon.Stays) {
		return
	}
	var way []string
	if !addon.Stays {
		way = addon.way(e.fit, p.ControlPlane.Oldest)
	}
	for _, version := range way {
		p.add(Step{Kind: MoveAddon, Name: addon.Name, From: p.Addons[i].Version, To: version})
		p.setAddon(i, version)
	}
	switch {
	case len(way) > 0 || fitsNow || e.optional:
	case addon.Stays:
		p.block(CheckAddon, object, "%s is not stated for %s, and it is pinned or to stay: let it follow the cluster (version: auto), or pin one that fits", addon.Version, v(to))
	case !addon.anyFits(to):
		p.warn(CheckAddon, object, "no version is stated for %s; %s stays: see whether it works there before workloads depend on it", v(to), addon.Version)
	default:
		p.block(CheckAddon, object, "no version that can replace %s is stated for both %s and %s: install one that is, or upgrade by way of a version between",
			addon.Version, v(p.ControlPlane.Oldest), v(to))
	}
}

func (p *planner) setAddon(i int, version string) {
	p.Addons = slices.Clone(p.Addons)
	p.Addons[i].Version = version
}

func fitsAll(release Release, kubernetes []*semver.Version) bool {
	for _, version := range kubernetes {
		if !release.Fits(version) {
			return false
		}
	}
	return true
}

func (a Addon) anyFits(kubernetes *semver.Version) bool {
	for _, release := range a.Releases {
		if release.Fits(kubernetes) {
			return true
		}
	}
	return false
}

// way returns the shortest way from what is installed to the newest release that fits all of kubernetes: the versions
// to install one after the other. Those between must fit now. It is empty where there is no way, and where there is
// nothing newer.
func (a Addon) way(kubernetes []*semver.Version, now *semver.Version) []string {
	for _, goal := range a.Releases {
		if goal.Version == a.Version {
			return nil
		}
		if !fitsAll(goal, kubernetes) {
			continue
		}
		if way := a.wayTo(goal.Version, now); way != nil {
			return way
		}
	}
	return nil
}

// wayTo searches breadth first, so that the first way found is a shortest one.
func (a Addon) wayTo(goal string, now *semver.Version) []string {
	before := map[string]string{a.Version: ""}
	for queue := []string{a.Version}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		if at == goal {
			var way []string
			for ; at != a.Version; at = before[at] {
				way = append(way, at)
			}
			slices.Reverse(way)
			return way
		}
		for _, next := range a.Releases {
			_, seen := before[next.Version]
			if seen || !next.UpgradesFrom(at) || next.Version != goal && !next.Fits(now) {
				continue
			}
			before[next.Version] = at
			queue = append(queue, next.Version)
		}
	}
	return nil
}
