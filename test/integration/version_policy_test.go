package integration

import (
	"fmt"
	"strings"
	"testing"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestAControlPlaneGoesNeitherBackNorOverAMinor(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	cases := map[string]struct {
		from, running, to string
		want              []string
	}{
		"a patch":                                {from: "v1.36.1", to: "v1.36.3"},
		"the next minor":                         {from: "v1.36.3", to: "v1.37.0"},
		"the v is added":                         {from: "1.36.3", to: "v1.36.3"},
		"a candidate, then its release":          {from: "v1.37.0-rc.1", to: "v1.37.0"},
		"a minor skipped":                        {from: "v1.35.4", to: "v1.37.2", want: []string{"spec.version", "v1.37.2 skips a minor", "runs v1.35.4", "upgrade to v1.36 first"}},
		"a second minor before the first is run": {from: "v1.36.3", running: "v1.35.4", to: "v1.37.2", want: []string{"skips a minor", "runs v1.35.4"}},
		"an older patch":                         {from: "v1.36.3", to: "v1.36.1", want: []string{"spec.version", "v1.36.1 is older than v1.36.3", "cannot be downgraded"}},
		"an older minor":                         {from: "v1.37.2", to: "v1.36.3", want: []string{"v1.36.3 is older than v1.37.2"}},
		"another major":                          {from: "v1.37.2", to: "v2.0.0", want: []string{"skips a minor"}},
		"no version":                             {from: "v1.37.2", to: "latest", want: []string{`"latest" is no Kubernetes version`, "give it as v1.37.2"}},
	}
	count := 0
	for name, tc := range cases {
		count++
		controlPlane := &controlplanev1.KubeadmControlPlane{}
		controlPlane.Namespace, controlPlane.Name = namespace, fmt.Sprintf("version-%d", count)
		controlPlane.Spec.Version = tc.from
		controlPlane.Spec.MachineTemplate.Spec.InfrastructureRef = fooRef("FooMachineTemplate", "version")
		t.Run(name, func(t *testing.T) {
			create(t, controlPlane)
			if tc.running != "" {
				//lint:ignore SA1019 The policy reads what upstream's control planes report, too.
				controlPlane.Status.Version = tc.running
				if err := admin.Status().Update(t.Context(), controlPlane); err != nil {
					t.Fatal(err)
				}
			}
			patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"version":%q}}`, tc.to))
			err := admin.Patch(t.Context(), controlPlane, patch)
			if len(tc.want) == 0 && err != nil {
				t.Fatalf("refused: %v", err)
			}
			for _, word := range tc.want {
				if err == nil || !strings.Contains(err.Error(), word) {
					t.Errorf("error is %v, want one that says %q", err, word)
				}
			}
		})
	}
}
