package kubeadm

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// versions are a patch release of each minor version that Kubernetes supports.
var versions = []string{"v1.34.4", "v1.35.4", "v1.36.3", "v1.37.2"}

// program returns the path of a version's kubeadm.
func program(t *testing.T, version string) string {
	t.Helper()
	if os.Getenv("ENDURANCE") != "" {
		return build(t, version)
	}
	cache := os.Getenv("MILLWRIGHT_CACHE")
	if cache == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			t.Fatal(err)
		}
		cache = filepath.Join(user, "millwright")
	}
	path := filepath.Join(cache, version+"-"+runtime.GOOS+"-"+runtime.GOARCH, "kubeadm")
	if _, err := os.Stat(path); err != nil {
		t.Skipf("no kubeadm %s in the cache: `make endurance` builds it, or bin/sandbox build --kubeadm %s", version, version)
	}
	return path
}

func build(t *testing.T, version string) string {
	t.Helper()
	_, file, _, _ := runtime.Caller(0)
	root := filepath.Dir(filepath.Dir(filepath.Dir(file)))
	command := exec.Command(filepath.Join(root, "bin", "sandbox"), "build", "--kubeadm", version)
	command.Dir, command.Stderr = root, os.Stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("sandbox build --kubeadm %s: %v (`make bin-sandbox` makes bin/sandbox)", version, err)
	}
	return strings.TrimSpace(string(out))
}

// judge returns what kubeadm says of a configuration, as an error when it is not to its taste. A warning about a field
// that it does not know counts as an error.
func judge(t *testing.T, kubeadm string, documents []byte) error {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeadm.yaml")
	if err := os.WriteFile(path, documents, 0o600); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	command := exec.Command(kubeadm, "config", "validate", "--config", path)
	command.Stdout, command.Stderr = &said, &said
	if err := command.Run(); err != nil {
		return fmt.Errorf("%w: %s", err, said.String())
	}
	for _, complaint := range []string{"unknown field", "strict decoding"} {
		if strings.Contains(said.String(), complaint) {
			return fmt.Errorf("it warns: %s", said.String())
		}
	}
	return nil
}
