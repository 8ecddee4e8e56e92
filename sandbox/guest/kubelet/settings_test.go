package kubelet

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/millwright-dev/millwright/sandbox/guest/rootfs"
)

func TestSettingsComeFromTheFilesThatKubeadmWrites(t *testing.T) {
	const config = "staticPodPath: /etc/kubernetes/manifests\nauthentication: {x509: {clientCAFile: /etc/kubernetes/pki/ca.crt}}\nhealthzPort: 10248\n"
	base := Settings{
		NodeName: "vm", StaticPodPath: "/etc/kubernetes/manifests", ClientCAFile: "/etc/kubernetes/pki/ca.crt",
		HealthzPort: 10248, MaxPods: 110, Labels: map[string]string{},
	}
	with := func(change func(*Settings)) Settings {
		s := base
		s.Labels = map[string]string{}
		change(&s)
		return s
	}
	cases := map[string]struct {
		config, flags string
		want          Settings
		wantErr       string
	}{
		"no flags": {config: config, want: base},
		"a control plane's": {
			config: config, flags: `--cloud-provider=external --hostname-override=Node-1`,
			want: with(func(s *Settings) { s.CloudProvider, s.NodeName = "external", "node-1" }),
		},
		"a worker's": {
			config: config + "maxPods: 20\nproviderID: from-config\n",
			flags:  `--register-with-taints=a=b:NoSchedule,c:NoExecute --node-labels=tier=x,node.kubernetes.io/pool=y --provider-id=vsphere://1 --node-ip=127.0.0.9 --v=4`,
			want: with(func(s *Settings) {
				s.MaxPods, s.ProviderID, s.NodeIP, s.WithoutEffect = 20, "vsphere://1", "127.0.0.9", []string{"v"}
				s.Labels = map[string]string{"tier": "x", "node.kubernetes.io/pool": "y"}
				s.Taints = []corev1.Taint{{Key: "a", Value: "b", Effect: "NoSchedule"}, {Key: "c", Effect: "NoExecute"}}
			}),
		},
		"a label that a kubelet may not set": {
			config: config, flags: "--node-labels=node-role.kubernetes.io/worker=", wantErr: "unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: node-role.kubernetes.io/worker",
		},
		"an unknown flag":        {config: config, flags: "--no-such-flag=1", wantErr: "unknown flag: --no-such-flag"},
		"a bad taint":            {config: config, flags: "--register-with-taints=a:Never", wantErr: "invalid taint spec: a:Never"},
		"an in-tree provider":    {config: config, flags: "--cloud-provider=vsphere", wantErr: "only external is known"},
		"a broken configuration": {config: "staticPodPath: [", wantErr: "failed to load kubelet config file, path: /var/lib/kubelet/config.yaml"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			root := rootfs.Root(t.TempDir())
			if err := root.WriteFile(ConfigPath, []byte(tc.config), 0o600); err != nil {
				t.Fatal(err)
			}
			if tc.flags != "" {
				if err := root.WriteFile(flagsPath, []byte(`KUBELET_KUBEADM_ARGS="`+tc.flags+"\"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, err := ReadSettings(root, "vm")
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Fatalf("error %v, want %q", err, tc.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWithoutConfigurationTheKubeletSaysWhichFileIsMissing(t *testing.T) {
	root := rootfs.Root(t.TempDir())
	_, err := ReadSettings(root, "vm")
	if err == nil || !strings.Contains(err.Error(), ConfigPath) || strings.Contains(err.Error(), string(root)) {
		t.Errorf("error %v", err)
	}
}
