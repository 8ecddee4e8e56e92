package lifecycle

import (
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// NormalizeVersion returns version with the leading v that Cluster API asks for; an empty one stays empty.
func NormalizeVersion(version string) string {
	if version == "" || strings.HasPrefix(version, "v") {
		return version
	}
	return "v" + version
}

// ParseVersion reads a Kubernetes version such as v1.37.2, with or without the v.
func ParseVersion(version string) (*semver.Version, error) {
	v, err := semver.StrictNewVersion(strings.TrimPrefix(version, "v"))
	if err != nil {
		return nil, fmt.Errorf("%q is not a Kubernetes version: want one such as v1.37.2", version)
	}
	return v, nil
}

// Older tells whether one Kubernetes version is older than another. What is no version is neither.
func Older(version, than string) bool {
	a, err1 := ParseVersion(version)
	b, err2 := ParseVersion(than)
	return err1 == nil && err2 == nil && a.LessThan(b)
}
