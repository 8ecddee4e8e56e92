package bundle

import (
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// Resolution is the version chosen for a cluster.
type Resolution struct {
	Addon   *Addon
	Version *Version
	// Warning says why the choice may not be a good one; empty when upstream states that it fits.
	Warning string
}

// Resolve chooses a version of an add-on. With want "" or "auto" it is the
// newest one whose Kubernetes range holds kubernetes; where upstream states
// none, the newest of all with a warning. A version that is named is taken,
// with a warning where its range does not hold kubernetes. An empty kubernetes
// fits everything.
func Resolve(addon *Addon, want, kubernetes string) (*Resolution, error) {
	if want != "" && want != "auto" {
		v, err := addon.Version(want)
		if err != nil {
			return nil, err
		}
		fits, err := v.Fits(kubernetes)
		if err != nil {
			return nil, err
		}
		r := &Resolution{Addon: addon, Version: v}
		if !fits {
			r.Warning = fmt.Sprintf("%s %s is stated for Kubernetes %s; the cluster is %s",
				addon.Name, v.Version, v.Kubernetes, withV(kubernetes))
		}
		return r, nil
	}
	for i := range addon.Versions {
		fits, err := addon.Versions[i].Fits(kubernetes)
		if err != nil {
			return nil, err
		}
		if fits {
			return &Resolution{Addon: addon, Version: &addon.Versions[i]}, nil
		}
	}
	newest := &addon.Versions[0]
	return &Resolution{Addon: addon, Version: newest, Warning: fmt.Sprintf(
		"no version of %s is stated for Kubernetes %s; taking the newest, %s, stated for %s",
		addon.Name, withV(kubernetes), newest.Version, newest.Kubernetes)}, nil
}

// Fits tells whether upstream states this version for a Kubernetes version.
func (v *Version) Fits(kubernetes string) (bool, error) {
	if kubernetes == "" {
		return true, nil
	}
	return inRange(v.Kubernetes, kubernetes)
}

// UpgradesFromVersion tells whether an installed version may be replaced by v in one step.
func (v *Version) UpgradesFromVersion(installed string) (bool, error) {
	if v.UpgradesFrom == "" || installed == v.Version {
		return true, nil
	}
	return inRange(v.UpgradesFrom, installed)
}

func inRange(constraint, version string) (bool, error) {
	c, err := semver.NewConstraint(constraint)
	if err != nil {
		return false, fmt.Errorf("range %q: %w", constraint, err)
	}
	parsed, err := semver.NewVersion(version)
	if err != nil {
		return false, fmt.Errorf("version %q is not a semantic version such as v1.37.2: %w", version, err)
	}
	// Distributions mark their builds (v1.37.2-gke.1, v1.37.2+k3s1); a range is meant for them too.
	release := semver.New(parsed.Major(), parsed.Minor(), parsed.Patch(), "", "")
	return c.Check(release), nil
}

func withV(version string) string { return "v" + strings.TrimPrefix(version, "v") }

// OlderThan compares with an installed version.
func (v *Version) OlderThan(installed string) (bool, error) {
	other, err := semver.NewVersion(installed)
	if err != nil {
		return false, fmt.Errorf("version %q is not a semantic version: %w", installed, err)
	}
	return v.semver.LessThan(other), nil
}

// Next chooses the version that an installed one goes to: the newest that is
// stated for kubernetes, is newer, and can be reached in one step. Nil says that
// there is none. beyond is the version that a further step leads to, where the
// newest is not reached at once.
func Next(addon *Addon, installed, kubernetes string) (next, beyond *Version, err error) {
	from, err := semver.NewVersion(installed)
	if err != nil {
		return nil, nil, fmt.Errorf("add-on %s is installed as %q, which is no version: name the new one", addon.Name, installed)
	}
	for i := range addon.Versions {
		v := &addon.Versions[i]
		fits, err := v.Fits(kubernetes)
		if err != nil {
			return nil, nil, err
		}
		if !fits || !v.semver.GreaterThan(from) {
			continue
		}
		reached, err := v.UpgradesFromVersion(installed)
		if err != nil {
			return nil, nil, err
		}
		if reached {
			return v, beyond, nil
		}
		if beyond == nil {
			beyond = v
		}
	}
	return nil, beyond, nil
}
