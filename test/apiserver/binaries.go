package apiserver

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// kubernetesVersion is the version of the management cluster that tests run against.
const kubernetesVersion = "v1.37.2"

// Has tells whether there are binaries of a version.
func Has(version string) bool {
	_, err := binaries(version)
	return err == nil
}

// binaries returns the folder that holds etcd and kube-apiserver: $KUBEBUILDER_ASSETS, else the cache of the sandbox.
func binaries(version string) (string, error) {
	folder := os.Getenv("KUBEBUILDER_ASSETS")
	if folder == "" {
		cache := os.Getenv("MILLWRIGHT_CACHE")
		if cache == "" {
			user, err := os.UserCacheDir()
			if err != nil {
				return "", fmt.Errorf("find the cache of Kubernetes binaries: %w: set MILLWRIGHT_CACHE", err)
			}
			cache = filepath.Join(user, "millwright")
		}
		folder = filepath.Join(cache, version+"-"+runtime.GOOS+"-"+runtime.GOARCH)
	}
	for _, name := range []string{"etcd", "kube-apiserver"} {
		if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
			return "", fmt.Errorf("no %s in %s: run `make sandbox-build` once, or set KUBEBUILDER_ASSETS", name, folder)
		}
	}
	return folder, nil
}
