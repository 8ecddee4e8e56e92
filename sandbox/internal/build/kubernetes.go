package build

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/millwright-dev/millwright/sandbox/internal/filelock"
)

// Builder builds what is missing and tells progress in lines.
type Builder struct {
	Source   Source
	Cache    Cache
	Progress io.Writer
}

// Binaries are the paths of the programs of one version.
type Binaries struct {
	Version string
	// Dir holds all four; the guests get it.
	Dir string
	// Etcd and APIServer are those of the management cluster.
	Etcd, APIServer, ControllerManager string
}

// Kubernetes returns the programs of a version, and builds those that the
// cache does not hold. Of two that ask at once, in whatever processes, one
// builds and the other waits.
func (b Builder) Kubernetes(ctx context.Context, version string) (Binaries, error) {
	dir := b.Cache.Dir(version)
	bin := Binaries{
		Version: version, Dir: dir,
		Etcd: filepath.Join(dir, Etcd), APIServer: filepath.Join(dir, APIServer), ControllerManager: filepath.Join(dir, ControllerManager),
	}
	given, err := assets()
	if err != nil {
		return Binaries{}, err
	}
	if given != "" {
		bin.Etcd, bin.APIServer = filepath.Join(given, Etcd), filepath.Join(given, APIServer)
	}
	if b.Cache.Holds(version) {
		return bin, nil
	}
	flags, err := b.Source.moduleFlags(version)
	if err != nil {
		return Binaries{}, err
	}
	lock, err := b.lock(ctx, "Kubernetes "+version, filepath.Base(dir))
	if err != nil {
		return Binaries{}, err
	}
	defer lock.Release()
	for _, name := range programs {
		output := filepath.Join(dir, name)
		if isFile(output) {
			continue
		}
		if ok, err := adopt(ctx, given, name, version, output); err != nil {
			return Binaries{}, err
		} else if ok {
			fmt.Fprintf(b.Progress, "took %s from %s\n", name, given)
			continue
		}
		if err := b.program(name, version, flags, output).run(ctx, b.Progress); err != nil {
			return Binaries{}, err
		}
	}
	return bin, nil
}

func (b Builder) program(name, version string, moduleFlags []string, output string) compile {
	c := compile{what: name + " " + version, dir: b.Source.Module(), output: output}
	if name == Etcd {
		// One etcd serves all versions: it is the module's own requirement.
		c.what, c.pkg, c.flags = name, "go.etcd.io/etcd/server/v3", []string{"-ldflags=-s -w"}
		return c
	}
	c.pkg = "k8s.io/kubernetes/cmd/" + name
	c.flags = append([]string{"-ldflags=" + versionFlags(version)}, moduleFlags...)
	return c
}

// versionFlags stamps the version as Kubernetes' own release build does; the
// programs refuse to start with an empty one.
func versionFlags(version string) string {
	const pkg = "k8s.io/component-base/version"
	major, rest, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	return fmt.Sprintf("-s -w -X %[1]s.gitVersion=%[2]s -X %[1]s.gitMajor=%[3]s -X %[1]s.gitMinor=%[4]s", pkg, version, major, minor)
}

// Guest builds the guest of a Kubernetes version and returns its path.
func (b Builder) Guest(ctx context.Context, version string) (string, error) {
	flags, err := b.Source.moduleFlags(version)
	if err != nil {
		return "", err
	}
	output := b.Source.Bin("guest-" + version)
	return output, b.alone(ctx, compile{
		what: "guest " + version, dir: b.Source.Module(), pkg: "./guest/cmd/guest", output: output, quietly: true,
		flags: append([]string{"-ldflags=" + versionFlags(version)}, flags...),
	})
}

// lock keeps others from building the same, in whatever process.
func (b Builder) lock(ctx context.Context, what, name string) (*filelock.Lock, error) {
	return filelock.Acquire(ctx, filepath.Join(string(b.Cache), name+".lock"), func() {
		fmt.Fprintf(b.Progress, "waiting: another process is building %s\n", what)
	})
}

// alone builds a program of the checkout while nobody else does.
func (b Builder) alone(ctx context.Context, c compile) error {
	lock, err := b.lock(ctx, c.what, filepath.Base(c.output))
	if err != nil {
		return err
	}
	defer lock.Release()
	return c.run(ctx, b.Progress)
}

// Operator returns bin/operator, and builds it where it is missing; the
// Makefile keeps it fresh.
func (b Builder) Operator(ctx context.Context) (string, error) {
	output := b.Source.Bin("operator")
	if isFile(output) {
		return output, nil
	}
	return output, b.alone(ctx, compile{what: "operator", dir: b.Source.Root, output: output, pkg: "./operator"})
}
