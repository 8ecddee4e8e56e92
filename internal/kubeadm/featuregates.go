package kubeadm

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// featureGates are those that the kubeadm of a minor version takes (cmd/kubeadm/app/features of Kubernetes at that
// version). test/kubeadm compares them with kubeadm itself.
var featureGates = map[uint64][]string{
	34: {"ControlPlaneKubeletLocalMode", "NodeLocalCRISocket", "PublicKeysECDSA", "RootlessControlPlane", "WaitForAllControlPlaneComponents"},
	35: {"ControlPlaneKubeletLocalMode", "NodeLocalCRISocket", "PublicKeysECDSA", "RootlessControlPlane"},
	36: {"NodeLocalCRISocket", "PublicKeysECDSA", "RootlessControlPlane"},
	37: {"RootlessControlPlane"},
}

// FeatureGates returns the gates that the kubeadm of a Kubernetes version takes; not known for a version that is older
// or newer than those we know.
func FeatureGates(version string) (gates []string, known bool) {
	parsed, err := semver.NewVersion(version)
	if err != nil || parsed.Major() != 1 {
		return nil, false
	}
	gates, known = featureGates[parsed.Minor()]
	return gates, known
}

// checkFeatureGates refuses what kubeadm would refuse on the machine, where nobody sees it. Of versions that we do not
// know, kubeadm is the judge.
func checkFeatureGates(set map[string]bool, version string) error {
	gates, known := FeatureGates(version)
	if !known {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if !slices.Contains(gates, name) {
			return fmt.Errorf("clusterConfiguration.featureGates: kubeadm %s has no gate %q: remove it; it knows %s "+
				"(gates of Kubernetes' components belong in their extraArgs)", version, name, strings.Join(gates, ", "))
		}
	}
	return nil
}
