package build

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// assets returns the folder of KUBEBUILDER_ASSETS, which holds etcd and
// kube-apiserver, or "".
func assets() (string, error) {
	dir := os.Getenv("KUBEBUILDER_ASSETS")
	if dir == "" {
		return "", nil
	}
	for _, name := range []string{Etcd, APIServer} {
		if !isFile(filepath.Join(dir, name)) {
			return "", errors.New("KUBEBUILDER_ASSETS is " + dir + ", which holds no " + name + ": correct it, or unset it to have it built")
		}
	}
	return dir, nil
}

// adopt copies a program from the folder of KUBEBUILDER_ASSETS into the cache
// where it is the one wanted, and says whether it did. Guests run it from
// there: the folder may be gone tomorrow.
func adopt(ctx context.Context, given, name, version, output string) (bool, error) {
	if given == "" || (name != Etcd && name != APIServer) {
		return false, nil
	}
	path := filepath.Join(given, name)
	if name == APIServer {
		out, err := exec.CommandContext(ctx, path, "--version").Output()
		if err != nil {
			return false, errors.New("KUBEBUILDER_ASSETS: " + path + " --version: " + err.Error())
		}
		if strings.TrimSpace(string(out)) != "Kubernetes "+version {
			return false, nil
		}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return false, err
	}
	if err := os.MkdirAll(filepath.Dir(output), 0o755); err != nil {
		return false, err
	}
	next := output + ".next"
	if err := os.WriteFile(next, data, 0o755); err != nil {
		return false, err
	}
	return true, os.Rename(next, output)
}
