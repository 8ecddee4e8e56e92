package kubeadm

import (
	"bytes"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	kubeadmapi "k8s.io/kubernetes/cmd/kubeadm/app/apis/kubeadm"
	"k8s.io/kubernetes/cmd/kubeadm/app/cmd/phases/workflow"

	"github.com/millwright-dev/millwright/sandbox/guest/rootfs"
)

// clusterPaths switches the paths of a cluster's configuration between the
// guest's, which go into ConfigMaps, and the host's, which phases write to.
type clusterPaths struct {
	root             rootfs.Root
	cfg              *kubeadmapi.ClusterConfiguration
	certificates     string
	hostCertificates string
	etcdData         string
}

func newClusterPaths(root rootfs.Root, cfg *kubeadmapi.ClusterConfiguration) *clusterPaths {
	p := &clusterPaths{root: root, cfg: cfg, certificates: cfg.CertificatesDir, hostCertificates: root.Path(cfg.CertificatesDir)}
	if cfg.Etcd.Local != nil {
		p.etcdData = cfg.Etcd.Local.DataDir
	}
	return p
}

func (p *clusterPaths) onHost() error {
	p.cfg.CertificatesDir = p.hostCertificates
	if p.cfg.Etcd.Local != nil {
		p.cfg.Etcd.Local.DataDir = p.root.Path(p.etcdData)
	}
	return nil
}

func (p *clusterPaths) onGuest() error {
	p.cfg.CertificatesDir = p.certificates
	if p.cfg.Etcd.Local != nil {
		p.cfg.Etcd.Local.DataDir = p.etcdData
	}
	return p.cleanManifests()
}

// cleanManifests takes the host's paths out of the manifests that were written
// with them. The kubelet reads both forms as the same.
func (p *clusterPaths) cleanManifests() error {
	files, err := filepath.Glob(filepath.Join(p.root.Path("/etc/kubernetes/manifests"), "*.yaml"))
	if err != nil {
		return err
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if bytes.Contains(raw, []byte(p.root)) {
			if err := replaceFile(file, []byte(p.root.Guest(string(raw)))); err != nil {
				return err
			}
		}
	}
	return nil
}

// replaceFile swaps the content at once, for the kubelet that watches.
func replaceFile(path string, content []byte) error {
	temporary := filepath.Join(filepath.Dir(path), "."+filepath.Base(path))
	if err := os.WriteFile(temporary, content, 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}

// around runs prepare before each step of one of kubeadm's phases.
func around(phase workflow.Phase, prepare func() error) workflow.Phase {
	if run := phase.Run; run != nil {
		phase.Run = func(data workflow.RunData) error {
			if err := prepare(); err != nil {
				return err
			}
			return run(data)
		}
	}
	for n := range phase.Phases {
		phase.Phases[n] = around(phase.Phases[n], prepare)
	}
	return phase
}

// replace keeps a phase's names, which --skip-phases may use, and puts another
// step in its place.
func replace(phase workflow.Phase, run func() error) workflow.Phase {
	phase.RunIf = nil
	phase.Run = func(workflow.RunData) error { return run() }
	for n := range phase.Phases {
		if !phase.Phases[n].RunAllSiblings {
			phase.Phases[n] = replace(phase.Phases[n], func() error { return nil })
		}
	}
	return phase
}

func initializer(data any) func(*cobra.Command, []string) (workflow.RunData, error) {
	return func(*cobra.Command, []string) (workflow.RunData, error) { return data, nil }
}
