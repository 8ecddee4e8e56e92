package release

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/millwright-dev/millwright/api/addons/v1alpha1"
	"github.com/millwright-dev/millwright/internal/bundle"
	"github.com/millwright-dev/millwright/internal/conditions"
)

// installed is what the workload cluster has of a bundle, by its record.
type installed struct {
	// version is empty where nothing is installed.
	version string
	// history are the versions that it had.
	history []string
}

// choice is the version that a cluster shall have now.
type choice struct {
	// version is nil where what is installed stays as it is and nothing is rendered.
	version *bundle.Version
	// resolved says why it is that one.
	resolved metav1.Condition
}

// choose picks the version for a cluster: the one that is named, or the newest that is stated for its Kubernetes version
// and can be reached. What is installed is kept where there is nothing better, and never replaced by something older
// unless that is named and was there before.
func choose(entry *bundle.Addon, want, kubernetes string, now installed) (choice, error) {
	if !addonsv1.Follows(want) {
		return chooseNamed(entry, want, kubernetes, now)
	}
	if now.version == "" {
		resolution, err := bundle.Resolve(entry, want, kubernetes)
		if err != nil {
			return choice{}, err
		}
		return resolved(resolution.Version, resolution.Warning), nil
	}
	next, beyond, err := bundle.Next(entry, now.version, kubernetes)
	switch {
	case err != nil:
		return choice{}, err
	case next != nil:
		return resolved(next, ""), nil
	}
	kept, err := entry.Version(now.version)
	if err != nil {
		return keep(addonsv1.NoWayReason, "%s %s is installed, which the catalogue does not have, and no version that can replace it is stated for Kubernetes %s: name one in spec.version",
			entry.Name, now.version, kubernetes), nil
	}
	fits, err := kept.Fits(kubernetes)
	switch {
	case err != nil:
		return choice{}, err
	case fits:
		return resolved(kept, ""), nil
	case beyond != nil:
		return resolved(kept, fmt.Sprintf("%s %s is stated for Kubernetes %s, but cannot be reached from %s in one step: name a version between in spec.version",
			entry.Name, beyond.Version, kubernetes, now.version)), nil
	}
	return resolved(kept, fmt.Sprintf("%s %s stays: it is stated for Kubernetes %s, and no newer version is stated for %s",
		entry.Name, now.version, kept.Kubernetes, kubernetes)), nil
}

func chooseNamed(entry *bundle.Addon, want, kubernetes string, now installed) (choice, error) {
	version, err := entry.Version(want)
	if err != nil {
		return keep(addonsv1.BundleNotFoundReason, "%v", err), nil
	}
	if now.version != "" && !slices.Contains(now.history, version.Version) {
		reached, err := version.UpgradesFromVersion(now.version)
		if err != nil {
			return choice{}, err
		}
		if !reached {
			return keep(addonsv1.NoWayReason, "%s %s cannot be reached from %s in one step, only from %s: name such a version first",
				entry.Name, version.Version, now.version, version.UpgradesFrom), nil
		}
	}
	resolution, err := bundle.Resolve(entry, want, kubernetes)
	if err != nil {
		return choice{}, err
	}
	return resolved(version, resolution.Warning), nil
}

// resolved is a choice; with a warning it is one that nobody vouches for.
func resolved(version *bundle.Version, warning string) choice {
	reason := addonsv1.ResolvedReason
	if warning != "" {
		reason = addonsv1.NotStatedReason
	}
	return choice{version: version, resolved: conditions.True(addonsv1.ResolvedCondition, reason, "%s", warning)}
}

func keep(reason, format string, args ...any) choice {
	return choice{resolved: conditions.False(addonsv1.ResolvedCondition, reason, format, args...)}
}

// dependency is another release of the same cluster.
type dependency struct {
	bundle string
	ready  bool
}

// waitsFor names the first bundle that has to be ready before a version and is not. One that no release brings is
// somebody else's business.
func waitsFor(version *bundle.Version, others []dependency) string {
	for _, name := range version.DependsOn {
		for _, other := range others {
			if other.bundle == name && !other.ready {
				return name
			}
		}
	}
	return ""
}
