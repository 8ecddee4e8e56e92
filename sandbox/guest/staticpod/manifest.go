package staticpod

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/millwright-dev/millwright/sandbox/guest/rootfs"
)

// Manifest is a static pod as its file has it.
type Manifest struct {
	Pod *corev1.Pod
	// Hash changes when the file's content does.
	Hash string
}

// Load reads the manifest folder of a guest. Files that are no pods come back as
// one error, beside those that are: a kubelet goes on with the rest.
func Load(root rootfs.Root, folder string) ([]Manifest, error) {
	entries, err := os.ReadDir(root.Path(folder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read static pod path %s: %w", folder, err)
	}
	var manifests []Manifest
	var failed []error
	for _, entry := range entries {
		if entry.IsDir() || strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		name := filepath.Join(folder, entry.Name())
		manifest, err := read(root, name)
		if err != nil {
			failed = append(failed, fmt.Errorf("could not process manifest file %s: %w", name, err))
			continue
		}
		manifests = append(manifests, manifest)
	}
	return manifests, errors.Join(failed...)
}

func read(root rootfs.Root, name string) (Manifest, error) {
	raw, err := os.ReadFile(root.Path(name))
	if err != nil {
		return Manifest{}, err
	}
	// kubeadm's packages are told to write below the root, so that it shows up in
	// what they write; the guest must not see it.
	raw = []byte(root.Guest(string(raw)))
	pod := &corev1.Pod{}
	if err := yaml.Unmarshal(raw, pod); err != nil {
		return Manifest{}, fmt.Errorf("invalid pod: %w", err)
	}
	if pod.Kind != "Pod" || pod.Name == "" || len(pod.Spec.Containers) == 0 {
		return Manifest{}, errors.New("invalid pod: kind Pod, a name and a container are needed")
	}
	if pod.Namespace == "" {
		pod.Namespace = corev1.NamespaceDefault
	}
	sum := sha256.Sum256(raw)
	return Manifest{Pod: pod, Hash: hex.EncodeToString(sum[:16])}, nil
}
