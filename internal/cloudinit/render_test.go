package cloudinit

import (
	"encoding/base64"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	"k8s.io/utils/ptr"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestUserDataMatchesItsGoldenFile(t *testing.T) {
	tests := map[string]Input{
		"init": {
			Command: Init,
			Config:  []byte("apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\n---\napiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\nnodeRegistration:\n  name: '{{ local_hostname }}'\n"),
			Certificates: []bootstrapv1.File{
				{Path: "/etc/kubernetes/pki/ca.crt", Owner: "root:root", Permissions: "0640", Content: "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"},
				{Path: "/etc/kubernetes/pki/ca.key", Owner: "root:root", Permissions: "0600", Content: "-----BEGIN RSA PRIVATE KEY-----\nBBBB\n-----END RSA PRIVATE KEY-----\n"},
			},
			Spec: bootstrapv1.KubeadmConfigSpec{
				Files: []bootstrapv1.File{
					{Path: "/etc/kubernetes/manifests/kube-vip.yaml", Owner: "root:root", Permissions: "0644", Content: "apiVersion: v1\nkind: Pod\n"},
					{Path: "/etc/hosts", Append: ptr.To(true), Content: "10.0.0.1 registry\n"},
				},
				PreKubeadmCommands:  []string{`hostnamectl set-hostname "{{ ds.meta_data.hostname }}"`, `echo "127.0.0.1   {{ ds.meta_data.hostname }} {{ local_hostname }} localhost" >>/etc/hosts`},
				PostKubeadmCommands: []string{"systemctl status kubelet"},
				Users:               []bootstrapv1.User{{Name: "capv", Sudo: "ALL=(ALL) NOPASSWD:ALL", SSHAuthorizedKeys: []string{"ssh-ed25519 AAAA me@here"}}},
				Verbosity:           ptr.To[int32](5),
			},
		},
		"join": {
			Command: Join,
			Config:  []byte("apiVersion: kubeadm.k8s.io/v1beta4\nkind: JoinConfiguration\n"),
		},
		"everything": {
			Command: Join,
			Config:  []byte("apiVersion: kubeadm.k8s.io/v1beta4\nkind: JoinConfiguration\n"),
			Spec: bootstrapv1.KubeadmConfigSpec{
				Files: []bootstrapv1.File{
					{Path: "/a", Encoding: bootstrapv1.Base64, Content: "aGVsbG8="},
					{Path: "/b", Encoding: bootstrapv1.GzipBase64, Content: "H4sIAAAAAAAAA8pIzcnJBwQAAP//hqYQNgUAAAA="},
				},
				BootCommands: []string{"modprobe br_netfilter"},
				NTP:          bootstrapv1.NTP{Enabled: ptr.To(true), Servers: []string{"0.pool.ntp.org", "1.pool.ntp.org"}},
				Users: []bootstrapv1.User{{
					Name: "ops", Gecos: "Operations: day", Groups: "sudo, adm", HomeDir: "/srv/ops", Inactive: ptr.To(false), Shell: "/bin/bash",
					Passwd: "$6$x$y", PrimaryGroup: "ops", LockPassword: ptr.To(false),
				}},
				DiskSetup: bootstrapv1.DiskSetup{
					Partitions: []bootstrapv1.Partition{
						{Device: "/dev/sdb", Layout: ptr.To(true), TableType: "gpt", Overwrite: ptr.To(false)},
						{Device: "/dev/sdc", DiskLayout: []bootstrapv1.PartitionSpec{{Percentage: 60, PartitionType: bootstrapv1.PartitionTypeLVM}, {Percentage: 40}}},
					},
					Filesystems: []bootstrapv1.Filesystem{{Device: "/dev/sdb", Filesystem: "ext4", Label: "etcd_disk", Partition: "auto", ExtraOpts: []string{"-E", "lazy_itable_init=1"}}},
				},
				Mounts: []bootstrapv1.MountPoints{{"LABEL=etcd_disk", "/var/lib/etcddisk"}},
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Render(tc)
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", name+".yaml")
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("run with -update if this is meant (-want +got):\n%s", diff)
			}
			var parsed map[string]any
			if err := yaml.Unmarshal(got, &parsed); err != nil {
				t.Errorf("invalid YAML: %v", err)
			}
		})
	}
}

func TestBinaryContentTravelsAsBase64(t *testing.T) {
	binary := string([]byte{0x1f, 0x8b, 0xff, 0x00})
	tests := map[string]struct {
		encoding bootstrapv1.Encoding
		want     string
	}{
		"plain":   {"", "base64"},
		"gzipped": {bootstrapv1.Gzip, "gzip+base64"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := renderFile(bootstrapv1.File{Path: "/x", Content: binary, Encoding: tc.encoding})
			want := file{Path: "/x", Encoding: tc.want, Content: base64.StdEncoding.EncodeToString([]byte(binary))}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnresolvedSecretsAreErrorsThatNameThem(t *testing.T) {
	tests := map[string]bootstrapv1.KubeadmConfigSpec{
		"registry": {Files: []bootstrapv1.File{{Path: "/x", ContentFrom: bootstrapv1.FileSource{Secret: bootstrapv1.SecretFileSource{Name: "registry", Key: "k"}}}}},
		"password": {Users: []bootstrapv1.User{{Name: "ops", PasswdFrom: bootstrapv1.PasswdSource{Secret: bootstrapv1.SecretPasswdSource{Name: "password", Key: "k"}}}}},
	}
	for secret, spec := range tests {
		if _, err := Render(Input{Command: Join, Spec: spec}); err == nil || !strings.Contains(err.Error(), secret) {
			t.Errorf("error %v does not name Secret %q", err, secret)
		}
	}
}

func TestWhatAUserAppendsToTheKubeadmConfigurationComesAfterIt(t *testing.T) {
	spec := bootstrapv1.KubeadmConfigSpec{Files: []bootstrapv1.File{
		{Path: InitConfigPath, Append: ptr.To(true), Content: "---\nkind: KubeletConfiguration\n"},
		{Path: "/etc/hosts", Append: ptr.To(true), Content: "10.0.0.1 registry\n"},
	}}
	var order []string
	for _, file := range (Input{Command: Init, Config: []byte("kind: ClusterConfiguration\n"), Spec: spec}).files() {
		order = append(order, file.Path)
	}
	want := []string{"/etc/hosts", InitConfigPath, placeholderPath, InitConfigPath}
	if diff := cmp.Diff(want, order); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
