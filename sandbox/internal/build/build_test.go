package build

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// checkout is a Builder whose `go` is a script that notes its arguments,
// and the notes.
func checkout(t *testing.T, script string) (Builder, func() []string) {
	t.Helper()
	root := t.TempDir()
	write(t, filepath.Join(root, "go.mod"), "module m\n", 0o644)
	write(t, filepath.Join(root, "sandbox", "go.mod"), "module m/sandbox\n", 0o644)
	write(t, filepath.Join(root, "sandbox", "versions", "v1.36.3.mod"), "module m/sandbox\n", 0o644)
	notes := filepath.Join(root, "notes")
	write(t, filepath.Join(root, "path", "go"), "#!/bin/sh\necho \"$@\" >> "+notes+"\n"+script, 0o755)
	t.Setenv("PATH", filepath.Join(root, "path")+":"+os.Getenv("PATH"))
	t.Setenv("KUBEBUILDER_ASSETS", "")
	b := Builder{Source: Source{Root: root}, Cache: Cache(filepath.Join(root, "cache")), Progress: &bytes.Buffer{}}
	return b, func() []string {
		data, err := os.ReadFile(notes)
		if err != nil {
			return nil
		}
		return strings.Split(strings.TrimSpace(string(data)), "\n")
	}
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// builds is a `go build` that takes a moment and leaves a program.
const builds = `while [ "$1" != -o ]; do shift; done; sleep 0.05; echo program > "$2"` + "\n"

func TestOfTwoThatNeedAVersionOneBuildsIt(t *testing.T) {
	b, notes := checkout(t, builds)
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			own := b
			own.Progress = &bytes.Buffer{}
			if _, err := own.Kubernetes(context.Background(), DefaultVersion); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	if got := notes(); len(got) != len(programs) {
		t.Errorf("%d builds, want one for each of %v:\n%s", len(got), programs, strings.Join(got, "\n"))
	}
	if !b.Cache.Holds(DefaultVersion) {
		t.Error("the cache does not hold what was built")
	}
}

func TestABuildThatFailsLeavesNothingAndSaysWhy(t *testing.T) {
	b, _ := checkout(t, "echo k8s.io/kubernetes/pkg/apis/core\necho 'x.go:1:2: undefined: y' >&2\nexit 1\n")
	_, err := b.Kubernetes(context.Background(), DefaultVersion)
	if err == nil {
		t.Fatal("a failed build passes")
	}
	for _, word := range []string{"build etcd", "x.go:1:2: undefined: y"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the error lacks %q: %v", word, err)
		}
	}
	if strings.Contains(err.Error(), "pkg/apis/core") {
		t.Errorf("the error lists what was compiled: %v", err)
	}
	left, globErr := filepath.Glob(filepath.Join(b.Cache.Dir(DefaultVersion), "*"))
	if globErr != nil || len(left) > 0 {
		t.Errorf("left behind: %v, error %v", left, globErr)
	}
}

func TestAnotherVersionIsBuiltFromRequirementsOfItsOwn(t *testing.T) {
	b, notes := checkout(t, builds)
	if _, err := b.Kubernetes(context.Background(), "v1.36.3"); err != nil {
		t.Fatal(err)
	}
	for _, line := range notes() {
		own := strings.Contains(line, "-modfile="+filepath.Join(b.Source.Module(), "versions", "v1.36.3.mod")) &&
			strings.Contains(line, "gitVersion=v1.36.3")
		if own == strings.Contains(line, "etcd") {
			t.Errorf("go %s", line)
		}
	}
}

func TestAVersionThatNobodyKnowsIsRefusedWithThoseThatThereAre(t *testing.T) {
	b, notes := checkout(t, builds)
	_, err := b.Kubernetes(context.Background(), "v1.9.0")
	if err == nil || !strings.Contains(err.Error(), "v1.36.3, v1.37.2") {
		t.Errorf("error %v, want one that names the versions", err)
	}
	if got := notes(); got != nil {
		t.Errorf("go was run: %v", got)
	}
}

func TestGivenAssetsServeInsteadOfABuild(t *testing.T) {
	b, notes := checkout(t, builds)
	given := t.TempDir()
	write(t, filepath.Join(given, Etcd), "#!/bin/sh\n", 0o755)
	write(t, filepath.Join(given, APIServer), "#!/bin/sh\necho Kubernetes "+DefaultVersion+"\n", 0o755)
	t.Setenv("KUBEBUILDER_ASSETS", given)
	bin, err := b.Kubernetes(context.Background(), DefaultVersion)
	if err != nil {
		t.Fatal(err)
	}
	if bin.APIServer != filepath.Join(given, APIServer) || bin.Etcd != filepath.Join(given, Etcd) {
		t.Errorf("binaries %+v, want the given ones", bin)
	}
	if got := notes(); len(got) != 2 {
		t.Errorf("builds %v, want those of the controller manager and the scheduler", got)
	}
	if !b.Cache.Holds(DefaultVersion) {
		t.Error("guests do not find the given ones in the cache")
	}
}

func TestAssetsThatAreNotThereAreNamed(t *testing.T) {
	b, _ := checkout(t, builds)
	t.Setenv("KUBEBUILDER_ASSETS", "/nowhere")
	if _, err := b.Kubernetes(context.Background(), DefaultVersion); err == nil || !strings.Contains(err.Error(), "/nowhere") {
		t.Errorf("error %v, want one about /nowhere", err)
	}
}
