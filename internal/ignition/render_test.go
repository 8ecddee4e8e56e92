package ignition

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/coreos/ignition/v2/config/v3_3"
	"github.com/coreos/ignition/v2/config/v3_3/types"
	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/millwright-dev/millwright/internal/cloudinit"
)

var update = flag.Bool("update", false, "rewrite the golden files")

type spec = bootstrapv1.KubeadmConfigSpec

func everything() cloudinit.Input {
	return cloudinit.Input{
		Command:      cloudinit.Init,
		Config:       []byte("kind: ClusterConfiguration\n"),
		Certificates: []bootstrapv1.File{{Path: "/etc/kubernetes/pki/ca.crt", Owner: "root:root", Permissions: "0640", Content: "CERT"}},
		Spec: spec{
			Files: []bootstrapv1.File{
				{Path: "/etc/motd", Content: "hello\n"},
				{Path: "/etc/motd", Content: "again\n", Append: ptr.To(true)},
				{Path: "/etc/hosts", Content: "10.0.0.9 api\n", Append: ptr.To(true)},
				{Path: "/etc/app.conf", Owner: "1000:app", Permissions: "0600", Encoding: bootstrapv1.GzipBase64, Content: "H4sI\nAAAA"},
				{Path: cloudinit.InitConfigPath, Append: ptr.To(true), Content: "---\nkind: KubeProxyConfiguration\n"},
			},
			Users: []bootstrapv1.User{
				{Name: "ops", Gecos: "Operations", Groups: "docker, sudo", HomeDir: "/home/ops", Shell: "/bin/bash", Passwd: "$6$hash", PrimaryGroup: "ops",
					Sudo: "ALL=(ALL) NOPASSWD:ALL", SSHAuthorizedKeys: []string{"ssh-ed25519 AAAA"}},
				{Name: "locked", Passwd: "$6$hash", LockPassword: ptr.To(true)},
			},
			DiskSetup: bootstrapv1.DiskSetup{
				Partitions: []bootstrapv1.Partition{
					{Device: "/dev/nvme1n1", Layout: ptr.To(true), Overwrite: ptr.To(true)},
					{Device: "/dev/disk/by-id/data", DiskLayout: []bootstrapv1.PartitionSpec{{Percentage: 100, PartitionType: bootstrapv1.PartitionTypeLinux}}},
					{Device: "/dev/sdz", Layout: ptr.To(false)},
				},
				Filesystems: []bootstrapv1.Filesystem{
					{Device: "/dev/nvme1n1", Filesystem: "ext4", Label: "etcd_disk", Overwrite: ptr.To(true), ExtraOpts: []string{"-E", "lazy_itable_init=1"}},
					{Device: "/dev/disk/by-id/data", Filesystem: "xfs", Label: "None", Partition: "auto"},
					{Device: "/dev/sdc", Filesystem: "ext4", Partition: "2"},
					{Device: "/dev/sdd", Filesystem: "ext4", Partition: "none"},
				},
			},
			Mounts: []bootstrapv1.MountPoints{
				{"LABEL=etcd_disk", "/var/lib/etcddisk"},
				{"/dev/sdc2", "/srv/my data/", "ext4", "noatime,ro"},
			},
			NTP:                 bootstrapv1.NTP{Servers: []string{"time.example.org", "10.0.0.1"}},
			PreKubeadmCommands:  []string{"hostnamectl set-hostname x"},
			PostKubeadmCommands: []string{"echo done"},
			Verbosity:           ptr.To[int32](5),
			Ignition: bootstrapv1.IgnitionSpec{ContainerLinuxConfig: bootstrapv1.ContainerLinuxConfig{Strict: ptr.To(true), AdditionalConfig: `{
				"ignition": {"version": "3.0.0"},
				"systemd": {"units": [{"name": "kubeadm.service", "enabled": true, "dropins": [{"name": "10-late.conf", "contents": "[Unit]\nAfter=late.service\n"}]}]}
			}`}},
		},
	}
}

// readable is the configuration with its files decoded.
func readable(t *testing.T, data []byte) string {
	t.Helper()
	config, _, err := v3_3.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	decode := func(r *types.Resource) {
		if r.Source == nil {
			return
		}
		encoded, ok := strings.CutPrefix(*r.Source, "data:;base64,")
		content, err := base64.StdEncoding.DecodeString(encoded)
		if !ok || err != nil {
			t.Fatalf("source %q: %v", *r.Source, err)
		}
		*r.Source = string(content)
		if r.Compression != nil {
			*r.Source = encoded
		}
	}
	for i := range config.Storage.Files {
		decode(&config.Storage.Files[i].Contents)
		for j := range config.Storage.Files[i].Append {
			decode(&config.Storage.Files[i].Append[j])
		}
	}
	encoded, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	var plain any
	if err := json.Unmarshal(encoded, &plain); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(withoutEmpty(plain)); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// withoutEmpty drops the objects that Ignition's types encode though nothing is in them.
func withoutEmpty(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key := range v {
			v[key] = withoutEmpty(v[key])
			if object, ok := v[key].(map[string]any); ok && len(object) == 0 {
				delete(v, key)
			}
		}
	case []any:
		for i := range v {
			v[i] = withoutEmpty(v[i])
		}
	}
	return value
}

func TestEveryFieldHasItsPlaceInIgnition(t *testing.T) {
	data, err := Render(everything())
	if err != nil {
		t.Fatal(err)
	}
	const golden = "testdata/everything.json"
	got := readable(t, data)
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("run with -update if this is meant (-want +got):\n%s", diff)
	}
	again, err := Render(everything())
	if err != nil || !bytes.Equal(data, again) {
		t.Errorf("rendered again it differs, %v", err)
	}
}

func TestWhatIgnitionCannotDoIsRefusedByItsField(t *testing.T) {
	additional := func(config string) func(*cloudinit.Input) {
		return func(in *cloudinit.Input) { in.Spec.Ignition.ContainerLinuxConfig.AdditionalConfig = config }
	}
	file := func(f bootstrapv1.File) func(*cloudinit.Input) {
		return func(in *cloudinit.Input) { in.Spec.Files = []bootstrapv1.File{f} }
	}
	disk := func(layout ...bootstrapv1.PartitionSpec) func(*cloudinit.Input) {
		return func(in *cloudinit.Input) {
			in.Spec.DiskSetup.Partitions = []bootstrapv1.Partition{{Device: "/dev/sdb", DiskLayout: layout}}
		}
	}
	mount := func(fields ...string) func(*cloudinit.Input) {
		return func(in *cloudinit.Input) { in.Spec.Mounts = []bootstrapv1.MountPoints{fields} }
	}
	for name, tc := range map[string]struct {
		change func(*cloudinit.Input)
		want   string
	}{
		"a template of cloud-init's": {func(in *cloudinit.Input) { in.Config = []byte("nodeRegistration:\n  name: '{{ local_hostname }}'\n") }, "template of cloud-init's, \"name: '{{ local_hostname }}'\""},
		"one in a command": {func(in *cloudinit.Input) {
			in.Spec.PreKubeadmCommands = []string{"crictl info --template '{{ .status }}'", "hostnamectl set-hostname {{ ds.meta_data.hostname }}"}
		}, "spec.preKubeadmCommands[1] has a template of cloud-init's"},
		"one in a file":             {file(bootstrapv1.File{Path: "/x", Content: "{{- v1.region }}"}), "spec.files[0] (/x) has a template"},
		"a file below /run":         {file(bootstrapv1.File{Path: "/run/x", Content: "x"}), "spec.files[0].path is /run/x: Ignition writes files before"},
		"permissions that are none": {file(bootstrapv1.File{Path: "/x", Permissions: "rw"}), `spec.files[0].permissions "rw" are not octal`},
		"content that is no base64": {file(bootstrapv1.File{Path: "/x", Encoding: bootstrapv1.Base64, Content: "hunter2!"}), "spec.files[0].content is not in base64"},
		"a path that is none":       {file(bootstrapv1.File{Path: "x", Content: "x"}), "Ignition would refuse what spec asks for"},
		"shares of a disk":          {disk(bootstrapv1.PartitionSpec{Percentage: 40}, bootstrapv1.PartitionSpec{Percentage: 60}), "spec.diskSetup.partitions[0].diskLayout gives shares"},
		"an extended partition":     {disk(bootstrapv1.PartitionSpec{Percentage: 100, PartitionType: bootstrapv1.PartitionTypeLinuxExtended}), "spec.diskSetup.partitions[0].diskLayout[0].partitionType"},
		"a file system it cannot make": {func(in *cloudinit.Input) {
			in.Spec.DiskSetup.Filesystems = []bootstrapv1.Filesystem{{Device: "/dev/sdb", Filesystem: "zfs"}}
		}, "$.storage.filesystems.0.format"},
		"cloud-init's ephemeral disk": {mount("ephemeral0", "/mnt"), `spec.mounts[0] mounts "ephemeral0", which only cloud-init knows`},
		"swap":                        {mount("/dev/sdb1", "none", "swap"), `spec.mounts[0] is mounted at "none"`},
		"Container Linux Config":      {additional("systemd:\n  units: []\n"), "spec.ignition.containerLinuxConfig.additionalConfig is no JSON"},
		"Ignition 2":                  {additional(`{"ignition": {"version": "2.3.0"}}`), "no Ignition configuration of version 3.0 to 3.3"},
		"newer than what we write":    {additional(`{"ignition": {"version": "3.5.0"}}`), "no Ignition configuration of version 3.0 to 3.3"},
		"a warning, strictly": {func(in *cloudinit.Input) {
			additional(`{"ignition": {"version": "3.3.0"}, "unknown": 1}`)(in)
			in.Spec.Ignition.ContainerLinuxConfig.Strict = ptr.To(true)
		}, "mend it, or set strict to false"},
	} {
		t.Run(name, func(t *testing.T) {
			in := cloudinit.Input{Command: cloudinit.Join, Config: []byte("kind: JoinConfiguration\n")}
			tc.change(&in)
			_, err := Render(in)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error quotes content: %s", err)
			}
		})
	}
}

func TestWhatHasNoEffectWithIgnitionIsNamed(t *testing.T) {
	got := Lost(spec{
		BootCommands: []string{"true"},
		Users:        []bootstrapv1.User{{Name: "a"}, {Name: "b", Inactive: ptr.To(true)}},
		DiskSetup: bootstrapv1.DiskSetup{
			Partitions:  []bootstrapv1.Partition{{Device: "/dev/sdb", TableType: "gpt"}, {Device: "/dev/sdc", TableType: "mbr"}},
			Filesystems: []bootstrapv1.Filesystem{{Device: "/dev/sdb", ReplaceFS: "ntfs"}},
		},
		Mounts: []bootstrapv1.MountPoints{{"/dev/sdb1", "/srv", "ext4", "ro"}, {"/dev/sdc1", "/opt/x", "ext4", "ro", "0", "2"}},
	})
	want := []string{"spec.bootCommands", "spec.users[1].inactive", "spec.diskSetup.partitions[1].tableType (it is gpt)",
		"spec.diskSetup.filesystems[0].replaceFS", "spec.mounts[1][4] and after (dump and pass)"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := Lost(everything().Spec); len(got) != 0 {
		t.Errorf("lost are %q", got)
	}
}

func TestUnitsAreNamedAsSystemdEscapesPaths(t *testing.T) {
	for where, want := range map[string]string{"/var/lib/etcd": "var-lib-etcd", "/srv/my data": `srv-my\x20data`, "/.hidden/a-b": `\x2ehidden-a\x2db`} {
		if got := escape(where); got != want {
			t.Errorf("escape(%q) = %q, want %q", where, got, want)
		}
	}
}
