package kubeadm

import (
	"maps"
	"slices"
	"strings"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// specName gives the name in the KubeadmConfig where it is not that of kubeadm.
var specName = strings.NewReplacer("certificateValidityPeriod", "certificateValidityPeriodDays")

// timeoutName is the ending that timeouts have in the KubeadmConfig.
const timeoutName = "Seconds"

// Lost returns the fields of a KubeadmConfig, by their path in its spec, that the kubeadm of a Kubernetes version cannot
// be told: those that came with v1beta4. Init tells whether the machine initializes the control plane or joins it.
func Lost(spec bootstrapv1.KubeadmConfigSpec, init bool, version string) []string {
	if api, err := apiFor(version); err != nil || api != v1beta3 {
		return nil
	}
	documents := map[string]any{"joinConfiguration": newJoinConfiguration(spec.JoinConfiguration)}
	if init {
		documents = map[string]any{
			"clusterConfiguration": newClusterConfiguration(spec.ClusterConfiguration, &clusterv1.Cluster{}, version),
			"initConfiguration":    newInitConfiguration(spec.InitConfiguration),
		}
	}
	var out []string
	for _, name := range sortedKeys(documents) {
		// Types of the API always encode.
		_, lost, _ := downgradeTelling(documents[name], nil)
		for _, path := range lost {
			path = specName.Replace(path)
			if strings.HasPrefix(path, "timeouts.") {
				path += timeoutName
			}
			out = append(out, "spec."+name+"."+path)
		}
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
