package kubeadm

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
)

func TestWhatAnOldKubeadmCannotBeToldIsNamed(t *testing.T) {
	spec := full()
	spec.InitConfiguration.NodeRegistration.KubeletExtraArgs = []bootstrapv1.Arg{arg("node-labels", "a=b"), arg("node-labels", "c=d"), arg("v", "2")}
	for name, tc := range map[string]struct {
		init    bool
		version string
		want    []string
	}{
		"a first machine of v1.30": {true, "v1.30.14", []string{
			"spec.clusterConfiguration.encryptionAlgorithm",
			"spec.clusterConfiguration.certificateValidityPeriodDays",
			"spec.clusterConfiguration.apiServer.extraEnvs",
			"spec.clusterConfiguration.etcd.local.extraEnvs",
			"spec.initConfiguration.timeouts.tlsBootstrapSeconds",
			"spec.initConfiguration.nodeRegistration.imagePullSerial",
			`spec.initConfiguration.nodeRegistration.kubeletExtraArgs (all "node-labels" but the last)`,
		}},
		"a further machine of v1.30": {false, "v1.30.14", []string{
			"spec.joinConfiguration.timeouts.controlPlaneComponentHealthCheckSeconds",
			"spec.joinConfiguration.nodeRegistration.imagePullSerial",
		}},
		"v1.31 takes all":             {true, "v1.31.0", nil},
		"no version that we can tell": {true, "latest", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Lost(spec, tc.init, tc.version)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if got := Lost(bootstrapv1.KubeadmConfigSpec{}, true, "v1.30.14"); len(got) != 0 {
		t.Errorf("of an empty spec is lost %q", got)
	}
}
