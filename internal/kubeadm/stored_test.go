package kubeadm

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	"sigs.k8s.io/yaml"
)

// storedBy returns what the kubeadm of a version wrote into kubeadm-config for the Cluster "prod" without options.
func storedBy(t *testing.T, version string) string {
	t.Helper()
	data, err := os.ReadFile("testdata/stored-" + version + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// storedV1Beta3 is what the kubeadm of v1.30 keeps.
const storedV1Beta3 = `apiServer:
  extraArgs:
    audit-log-path: "-"
    authorization-mode: Node,RBAC
  timeoutForControlPlane: 4m0s
apiVersion: kubeadm.k8s.io/v1beta3
certificatesDir: /etc/kubernetes/pki
clusterName: prod
controllerManager: {}
dns: {}
etcd:
  local:
    dataDir: /var/lib/etcd
    extraArgs:
      quota-backend-bytes: "8589934592"
imageRepository: registry.k8s.io
kind: ClusterConfiguration
kubernetesVersion: v1.30.9
networking:
  dnsDomain: cluster.local
scheduler: {}
`

// change is one line of the stored text for another.
func change(pairs ...string) func(string) string { return strings.NewReplacer(pairs...).Replace }

func TestTheStoredConfigurationFollowsTheSpec(t *testing.T) {
	v136 := storedBy(t, "v1.36.3")
	own := v136 + "unheardOf:\n  since: v1.99\n"
	cases := map[string]struct {
		stored  string
		spec    func(*bootstrapv1.ClusterConfiguration)
		version string
		want    func(string) string
	}{
		"nothing to say": {stored: v136, version: "v1.36.3", want: change()},
		"nothing to say, in the user's own words": {stored: "# ours\n" + v136, version: "v1.36.3", want: change(), spec: func(c *bootstrapv1.ClusterConfiguration) {
			c.Scheduler.ExtraVolumes = []bootstrapv1.HostPathMount{}
		}},
		"kubeadm's defaults, spelled out": {stored: v136, version: "v1.36.3", want: change(), spec: func(c *bootstrapv1.ClusterConfiguration) {
			c.ImageRepository, c.CertificateValidityPeriodDays, c.CACertificateValidityPeriodDays = "registry.k8s.io", 365, 3650
			c.EncryptionAlgorithm, c.Etcd.Local.DataDir = bootstrapv1.EncryptionAlgorithmRSA2048, "/var/lib/etcd"
		}},
		"a new version": {stored: own, version: "v1.37.2", want: change("v1.36.3", "v1.37.2")},
		"a version whose kubeadm reads the next API as well": {stored: change("v1beta4", "v1")(v136), version: "v1.37.2", want: change("v1.36.3", "v1.37.2")},
		"without clusterConfiguration the cluster's own stays": {
			stored: change("imageRepository: registry.k8s.io", "imageRepository: mirror.example.org")(v136), version: "v1.37.2", want: change("v1.36.3", "v1.37.2"),
		},
		"settings": {stored: own, version: "v1.36.3", spec: func(c *bootstrapv1.ClusterConfiguration) {
			c.ImageRepository, c.DNS.ImageTag, c.Etcd.Local.ImageTag = "mirror.example.org", "v1.14.6", "3.6.8-0"
			c.FeatureGates = map[string]bool{"NodeLocalCRISocket": false}
			c.APIServer.ExtraArgs = []bootstrapv1.Arg{arg("audit-log-path", "-"), arg("v", "")}
			c.Scheduler.ExtraVolumes = []bootstrapv1.HostPathMount{{Name: "a", HostPath: "/a", MountPath: "/a", ReadOnly: ptr.To(false)}}
			c.EncryptionAlgorithm = bootstrapv1.EncryptionAlgorithmECDSAP256
		}, want: change(
			"apiServer: {}\n", "apiServer:\n  extraArgs:\n  - name: audit-log-path\n    value: '-'\n  - name: v\n    value: \"\"\n",
			"dns: {}", "dns:\n  imageTag: v1.14.6", "dataDir: /var/lib/etcd", "dataDir: /var/lib/etcd\n    imageTag: 3.6.8-0",
			"imageRepository: registry.k8s.io\n", "featureGates:\n  NodeLocalCRISocket: false\nimageRepository: mirror.example.org\n",
			"RSA-2048", "ECDSA-P256",
			"scheduler: {}", "scheduler:\n  extraVolumes:\n  - hostPath: /a\n    mountPath: /a\n    name: a\n    readOnly: false",
		)},
		"settings that were taken back": {
			stored: change("imageRepository: registry.k8s.io", "imageRepository: mirror.example.org", "dns: {}", "dns:\n  imageTag: v1.14.6", "apiServer: {}", "apiServer:\n  extraArgs:\n  - name: v\n    value: \"2\"")(v136),
			spec:   func(c *bootstrapv1.ClusterConfiguration) { c.CertificatesDir = "/etc/kubernetes/pki" }, version: "v1.36.3",
			want: change("imageRepository: mirror.example.org\n", "", "dns:\n  imageTag: v1.14.6", "dns: {}", "apiServer:\n  extraArgs:\n  - name: v\n    value: \"2\"", "apiServer: {}"),
		},
		"v1beta3 for the kubeadm that still writes it": {
			stored: storedV1Beta3, version: "v1.30.10", want: change("v1.30.9", "v1.30.10", `"8589934592"`, `"4294967296"`),
			spec: func(c *bootstrapv1.ClusterConfiguration) {
				c.APIServer.ExtraArgs = []bootstrapv1.Arg{arg("authorization-mode", "Node,RBAC"), arg("audit-log-path", "-")}
				c.Etcd.Local.ExtraArgs = []bootstrapv1.Arg{arg("quota-backend-bytes", "4294967296")}
			},
		},
		"v1beta3 for the first kubeadm that is to read v1beta4": {
			stored: storedV1Beta3, version: "v1.31.0", want: change(
				"v1.30.9", "v1.31.0", "v1beta3", "v1beta4", "  timeoutForControlPlane: 4m0s\n", "",
				"    audit-log-path: \"-\"\n    authorization-mode: Node,RBAC\n", "  - name: audit-log-path\n    value: '-'\n  - name: authorization-mode\n    value: Node,RBAC\n",
				"      quota-backend-bytes: \"8589934592\"", "    - name: quota-backend-bytes\n      value: \"8589934592\""),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := bootstrapv1.KubeadmConfigSpec{}
			if tc.spec != nil {
				tc.spec(&spec.ClusterConfiguration)
			}
			got, err := UpdateClusterConfiguration(tc.stored, spec, prod(), tc.version)
			if err != nil {
				t.Fatal(err)
			}
			want := tc.want(tc.stored)
			if want == tc.stored && got != want {
				t.Fatalf("rewritten without need (-want +got):\n%s", cmp.Diff(want, got))
			}
			if diff := cmp.Diff(parsed(t, want), parsed(t, got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			again, err := UpdateClusterConfiguration(got, spec, prod(), tc.version)
			if err != nil || again != got {
				t.Errorf("not at rest after one update: %v (-first +second):\n%s", err, cmp.Diff(got, again))
			}
		})
	}
}

func parsed(t *testing.T, text string) map[string]any {
	t.Helper()
	out := map[string]any{}
	if err := yaml.UnmarshalStrict([]byte(text), &out); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	return out
}

func TestAStoredConfigurationThatKubeadmCouldNotReadIsRefused(t *testing.T) {
	v136 := storedBy(t, "v1.36.3")
	cases := map[string]struct {
		stored, version string
		spec            bootstrapv1.ClusterConfiguration
		want            []string
	}{
		"an old API":             {stored: change("v1beta4", "v1beta2")(v136), version: "v1.36.3", want: []string{"v1beta2", "kubeadm config migrate"}},
		"an API of the future":   {stored: v136, version: "v1.30.9", want: []string{"v1beta4", "v1.30.9"}},
		"another kind":           {stored: "kind: InitConfiguration\n", version: "v1.36.3", want: []string{"InitConfiguration"}},
		"nothing":                {version: "v1.36.3", want: []string{`kind ""`, "restore"}},
		"no YAML":                {stored: "{", version: "v1.36.3", want: []string{"read the stored ClusterConfiguration"}},
		"a gate that is no more": {stored: v136, version: "v1.37.2", spec: bootstrapv1.ClusterConfiguration{FeatureGates: map[string]bool{"PublicKeysECDSA": true}}, want: []string{"featureGates", "PublicKeysECDSA", "v1.37.2"}},
		"etcd that moves out": {stored: v136, version: "v1.36.3", spec: bootstrapv1.ClusterConfiguration{
			Etcd: bootstrapv1.Etcd{External: bootstrapv1.ExternalEtcd{Endpoints: []string{"https://192.0.2.1:2379"}}},
		}, want: []string{"clusterConfiguration.etcd", "set it back"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := UpdateClusterConfiguration(tc.stored, bootstrapv1.KubeadmConfigSpec{ClusterConfiguration: tc.spec}, prod(), tc.version)
			for _, word := range tc.want {
				if err == nil || !strings.Contains(err.Error(), word) {
					t.Errorf("got %q, error %v, want %q in it", got, err, word)
				}
			}
		})
	}
}
