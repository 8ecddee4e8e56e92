package machineset

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestPreflightHoldsMachinesBack(t *testing.T) {
	const (
		stable     = "ControlPlaneIsStable"
		kubernetes = "KubernetesVersionSkew"
		kubeadm    = "KubeadmVersionSkew"
		same       = "ControlPlaneVersionSkew"
	)
	kubeadmConfig := clusterv1.ContractVersionedObjectReference{APIGroup: "bootstrap.cluster.x-k8s.io", Kind: "KubeadmConfigTemplate", Name: "workers"}
	otherConfig := clusterv1.ContractVersionedObjectReference{APIGroup: "bootstrap.cluster.x-k8s.io", Kind: "TalosConfigTemplate", Name: "workers"}

	cases := map[string]struct {
		controlPlane controlPlane
		version      string
		bootstrap    clusterv1.ContractVersionedObjectReference
		skip         string
		want         []string
	}{
		"all well":                        {controlPlane: controlPlane{wanted: "v1.37.2", running: "v1.37.2"}, version: "v1.37.2", bootstrap: kubeadmConfig},
		"a control plane without version": {controlPlane: controlPlane{running: "v1.37.2"}, version: "v1.30.0", bootstrap: kubeadmConfig},
		"a set without version":           {controlPlane: controlPlane{wanted: "v1.37.2", running: "v1.37.2"}, bootstrap: kubeadmConfig},
		"not up yet":                      {controlPlane: controlPlane{wanted: "v1.37.2"}, version: "v1.37.2", want: []string{stable}},
		"being upgraded":                  {controlPlane: controlPlane{wanted: "v1.37.2", running: "v1.36.3"}, version: "v1.36.3", bootstrap: otherConfig, want: []string{stable}},
		"about to be upgraded":            {controlPlane: controlPlane{wanted: "v1.36.3", running: "v1.36.3", topology: "v1.37.2"}, version: "v1.36.3", want: []string{stable}},
		"newer than the control plane":    {controlPlane: controlPlane{wanted: "v1.36.3", running: "v1.36.3"}, version: "v1.37.2", bootstrap: otherConfig, want: []string{kubernetes}},
		"three minors older":              {controlPlane: controlPlane{wanted: "v1.37.2", running: "v1.37.2"}, version: "v1.34.0", bootstrap: otherConfig},
		"four minors older":               {controlPlane: controlPlane{wanted: "v1.37.2", running: "v1.37.2"}, version: "v1.33.0", bootstrap: otherConfig, want: []string{kubernetes}},
		"three minors before v1.28":       {controlPlane: controlPlane{wanted: "v1.27.0", running: "v1.27.0"}, version: "v1.24.0", bootstrap: otherConfig, want: []string{kubernetes}},
		"kubeadm of another minor":        {controlPlane: controlPlane{wanted: "v1.37.2", running: "v1.37.2"}, version: "v1.36.3", bootstrap: kubeadmConfig, want: []string{kubeadm}},
		"kubeadm of another patch":        {controlPlane: controlPlane{wanted: "v1.37.2", running: "v1.37.2"}, version: "v1.37.0", bootstrap: kubeadmConfig},
		"another version in a topology": {
			controlPlane: controlPlane{wanted: "v1.37.2", running: "v1.37.2", topology: "v1.37.2"}, version: "v1.37.0", want: []string{same},
		},
		"what is no version": {controlPlane: controlPlane{wanted: "v1.37.2", running: "v1.37.2"}, version: "latest", want: []string{kubernetes}},
		"several": {
			controlPlane: controlPlane{wanted: "v1.37.2", running: "v1.36.3"}, version: "v1.38.0", bootstrap: kubeadmConfig, want: []string{stable, kubernetes, kubeadm},
		},
		"some skipped": {
			controlPlane: controlPlane{wanted: "v1.37.2", running: "v1.36.3"}, version: "v1.38.0", bootstrap: kubeadmConfig,
			skip: "ControlPlaneIsStable, KubeadmVersionSkew", want: []string{kubernetes},
		},
		"all skipped": {controlPlane: controlPlane{wanted: "v1.37.2"}, version: "v1.38.0", bootstrap: kubeadmConfig, skip: "All"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			set := makeSet(nil, func(s *clusterv1.MachineSet) {
				s.Annotations = map[string]string{clusterv1.MachineSetSkipPreflightChecksAnnotation: tc.skip}
				s.Spec.Template.Spec.Version = tc.version
				s.Spec.Template.Spec.Bootstrap.ConfigRef = tc.bootstrap
			})
			var got []string
			for _, problem := range preflight(set, tc.controlPlane) {
				_, check, _ := strings.Cut(problem, "(check ")
				got = append(got, strings.TrimSuffix(check, ")"))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("failed checks (-want +got):\n%s\n%q", diff, preflight(set, tc.controlPlane))
			}
		})
	}
}
