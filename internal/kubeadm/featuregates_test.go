package kubeadm

import (
	"strings"
	"testing"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
)

func TestAFeatureGateThatKubeadmDoesNotHaveIsRefusedByName(t *testing.T) {
	cases := map[string]struct {
		gate, version string
		want          []string
	}{
		"known":                           {gate: "RootlessControlPlane", version: "v1.37.2"},
		"known once, gone since":          {gate: "PublicKeysECDSA", version: "v1.37.2", want: []string{"clusterConfiguration.featureGates", `"PublicKeysECDSA"`, "v1.37.2", "RootlessControlPlane", "remove it"}},
		"known once":                      {gate: "PublicKeysECDSA", version: "v1.36.3"},
		"of another component":            {gate: "UserNamespacesSupport", version: "v1.35.4", want: []string{`"UserNamespacesSupport"`, "extraArgs"}},
		"of a version that we know not":   {gate: "Anything", version: "v1.99.0"},
		"of one that is older than known": {gate: "Anything", version: "v1.30.0"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := bootstrapv1.KubeadmConfigSpec{}
			spec.ClusterConfiguration.FeatureGates = map[string]bool{tc.gate: true}
			_, err := InitConfig(spec, prod(), tc.version)
			if len(tc.want) == 0 && err != nil {
				t.Fatalf("refused: %v", err)
			}
			for _, word := range tc.want {
				if err == nil || !strings.Contains(err.Error(), word) {
					t.Errorf("error %v, want %q in it", err, word)
				}
			}
		})
	}
}
