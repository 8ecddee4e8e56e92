package build

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// DefaultVersion is the Kubernetes version that the sandbox's own go.mod requires.
const DefaultVersion = "v1.37.2"

// Programs of a Kubernetes version, in the order in which they are needed.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
)

var programs = []string{Etcd, APIServer, ControllerManager, Scheduler}

// Source is a checkout of Millwright.
type Source struct{ Root string }

// Find looks for the checkout that this program belongs to: above the program
// itself (bin/sandbox), then above the working directory.
func Find() (Source, error) {
	var tried []string
	if exe, err := os.Executable(); err == nil {
		if exe, err = filepath.EvalSymlinks(exe); err == nil {
			tried = append(tried, filepath.Dir(exe))
		}
	}
	if wd, err := os.Getwd(); err == nil {
		tried = append(tried, wd)
	}
	for _, start := range tried {
		for dir := start; ; dir = filepath.Dir(dir) {
			if isFile(filepath.Join(dir, "sandbox", "go.mod")) && isFile(filepath.Join(dir, "go.mod")) {
				return Source{Root: dir}, nil
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return Source{}, fmt.Errorf("no checkout of Millwright above %s: the sandbox is built from source; run it inside one",
		strings.Join(tried, " or "))
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// Module is the folder of the sandbox's Go module.
func (s Source) Module() string { return filepath.Join(s.Root, "sandbox") }

// Bin is where programs are put that belong to the checkout.
func (s Source) Bin(name string) string { return filepath.Join(s.Root, "bin", name) }

// Manifests is the kustomization that installs Millwright.
func (s Source) Manifests() string { return filepath.Join(s.Root, "manifests", "default") }

// Versions returns the Kubernetes versions that the sandbox can build.
func (s Source) Versions() ([]string, error) {
	files, err := filepath.Glob(filepath.Join(s.Module(), "versions", "v*.mod"))
	if err != nil {
		return nil, err
	}
	versions := []string{DefaultVersion}
	for _, f := range files {
		versions = append(versions, strings.TrimSuffix(filepath.Base(f), ".mod"))
	}
	slices.Sort(versions)
	return slices.Compact(versions), nil
}

// moduleFlags returns the flags that make go build take a version's
// requirements.
func (s Source) moduleFlags(version string) ([]string, error) {
	if version == DefaultVersion {
		return nil, nil
	}
	modfile := filepath.Join(s.Module(), "versions", version+".mod")
	if isFile(modfile) {
		return []string{"-modfile=" + modfile}, nil
	}
	known, err := s.Versions()
	if err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("the sandbox has no Kubernetes %s: it can build %s", version, strings.Join(known, ", "))
}

// Cache is the folder with a sub-folder for each version and platform.
type Cache string

// OpenCache returns the cache that $MILLWRIGHT_CACHE names, or else
// "millwright" in the user's cache directory.
func OpenCache() (Cache, error) {
	if dir := os.Getenv("MILLWRIGHT_CACHE"); dir != "" {
		abs, err := filepath.Abs(dir)
		return Cache(abs), err
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a cache directory, set MILLWRIGHT_CACHE to one: %w", err)
	}
	return Cache(filepath.Join(dir, "millwright")), nil
}

// Dir is the folder of a version's programs on this platform.
func (c Cache) Dir(version string) string {
	return filepath.Join(string(c), version+"-"+runtime.GOOS+"-"+runtime.GOARCH)
}

// Holds says whether all programs of a version are there.
func (c Cache) Holds(version string) bool {
	for _, name := range programs {
		if !isFile(filepath.Join(c.Dir(version), name)) {
			return false
		}
	}
	return true
}
