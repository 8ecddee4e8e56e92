package kubeadm

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/utils/ptr"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	"sigs.k8s.io/yaml"

	"github.com/millwright-dev/millwright/internal/cloudinit"
)

// cloudConfig is what of our user data kubeadm sees.
type cloudConfig struct {
	Files []struct {
		Path, Content string
		Append        bool
	} `json:"write_files"`
}

// writeFiles writes the files of user data for the spec as cloud-init would, below a folder instead of the root, and
// returns the path of kubeadm's configuration.
func writeFiles(t *testing.T, root, version string, set func(*spec)) string {
	t.Helper()
	s := spec{}
	set(&s)
	data, err := cloudinit.Render(cloudinit.Input{Command: cloudinit.Init, Config: initDocuments(t, version, set), Spec: s})
	if err != nil {
		t.Fatal(err)
	}
	var config cloudConfig
	if err := yaml.Unmarshal(data, &config); err != nil {
		t.Fatal(err)
	}
	for _, file := range config.Files {
		path := file.Path
		if !strings.HasPrefix(path, root) {
			path = filepath.Join(root, path)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		flags := os.O_CREATE | os.O_WRONLY | os.O_TRUNC
		if file.Append {
			flags = os.O_WRONLY | os.O_APPEND
		}
		opened, err := os.OpenFile(path, flags, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := opened.WriteString(file.Content); err != nil {
			t.Fatal(err)
		}
		if err := opened.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(root, cloudinit.InitConfigPath)
}

// TestKubeadmGivesTheKubeletWhatTheUserConfigures runs the phases of kubeadm that write a kubelet's configuration and an
// API server's manifest, with the files that our user data writes.
func TestKubeadmGivesTheKubeletWhatTheUserConfigures(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			kubeadm := program(t, version)
			root := t.TempDir()
			patches := filepath.Join(root, "patches")
			set := func(s *spec) {
				s.InitConfiguration.NodeRegistration = registration()
				s.InitConfiguration.Patches.Directory = patches
				s.Files = []bootstrapv1.File{
					{Path: cloudinit.InitConfigPath, Append: ptr.To(true), Content: "---\napiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: 61\nserializeImagePulls: false\n"},
					{Path: filepath.Join(patches, "kubeletconfiguration0+merge.json"), Content: `{"podsPerCore": 7}`},
					{Path: filepath.Join(patches, "kube-apiserver0+merge.yaml"), Content: "metadata:\n  annotations:\n    example.org/patched: \"yes\"\n"},
				}
			}
			config := writeFiles(t, root, version, set)
			out := filepath.Join(root, "out")
			if err := os.Mkdir(out, 0o700); err != nil {
				t.Fatal(err)
			}
			for _, phase := range [][]string{{"kubelet-start"}, {"control-plane", "apiserver"}} {
				var said bytes.Buffer
				command := exec.Command(kubeadm, append(append([]string{"init", "phase"}, phase...), "--config", config, "--dry-run")...)
				command.Env = append(os.Environ(), "KUBEADM_INIT_DRYRUN_DIR="+out)
				command.Stdout, command.Stderr = &said, &said
				if err := command.Run(); err != nil {
					t.Fatalf("%v: %s", err, said.String())
				}
			}
			kubelet, err := os.ReadFile(filepath.Join(out, "config.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			manifest, err := os.ReadFile(filepath.Join(out, "kube-apiserver.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			for want, in := range map[string][]byte{
				"\nmaxPods: 61\n": kubelet, "\nserializeImagePulls: false\n": kubelet, "\npodsPerCore: 7\n": kubelet, "example.org/patched: \"yes\"\n": manifest,
			} {
				if !bytes.Contains(in, []byte(want)) {
					t.Errorf("no %q in\n%s", want, in)
				}
			}
		})
	}
}
