package e2e

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/millwright-dev/millwright/test/sandboxtest"
)

// mirror is the folder of upstream manifests that stands beside this repository.
func mirror(t *testing.T) string {
	t.Helper()
	path := os.Getenv("MILLWRIGHT_MIRROR")
	if path == "" {
		path = filepath.Join(bed.Root, "..", "shared", "upstream")
	}
	if _, err := os.Stat(path); err != nil {
		message := "no mirror of upstream manifests at " + path + ": name one in MILLWRIGHT_MIRROR"
		if os.Getenv("CI") != "" {
			t.Fatal(message)
		}
		t.Skip(message)
	}
	return path
}

// settled returns resourceVersions once two readings a second apart agree: until
// then the workload cluster's own controllers are still writing status.
func settled(t *testing.T, kubeconfig string) string {
	t.Helper()
	last := ""
	sandboxtest.Eventually(t, 2*time.Minute, func() string {
		before := last
		last = resourceVersions(t, kubeconfig)
		if last != before {
			return "the objects of the add-on do not come to rest"
		}
		return ""
	})
	return last
}

// resourceVersions lists the objects of the add-on sets, one a line, with
// their resourceVersions.
func resourceVersions(t *testing.T, kubeconfig string) string {
	t.Helper()
	kinds := strings.Fields(bed.Run(t, "kubectl", "--kubeconfig", kubeconfig, "api-resources", "--verbs", "list", "-o", "name"))
	return bed.Run(t, "kubectl", "--kubeconfig", kubeconfig, "get", strings.Join(kinds, ","), "-A",
		"-l", "applyset.kubernetes.io/part-of", "-o",
		`jsonpath={range .items[*]}{.kind}/{.metadata.namespace}/{.metadata.name} {.metadata.resourceVersion}{"\n"}{end}`)
}

func testAddonsArePutOnceAndOnlyFromWhatTheyWereMadeOf(t *testing.T, cluster, kubeconfig string) {
	const addon = "calico"
	source := filepath.Join(mirror(t), "calico", "v3.32.1", "calico.yaml")
	install := func(mirror string) sandboxtest.Result {
		return bed.Try(t, []string{"MILLWRIGHT_MIRROR=" + mirror}, "", "kubectl", "addons", "install", addon, "--cluster", cluster)
	}

	first := install(mirror(t))
	if first.Code != 0 {
		t.Fatalf("install: exit code %d\n%s%s", first.Code, first.Stdout, first.Stderr)
	}
	before := settled(t, kubeconfig)
	manifest, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	// 38 objects in Calico 3.32.1: counted by the kinds at the start of a line.
	want := strings.Count("\n"+string(manifest), "\nkind: ")
	if got := len(strings.Fields(before)) / 2; got != want {
		t.Errorf("%d objects bear the set's label, want the %d of the manifest:\n%s", got, want, before)
	}

	second := install(mirror(t))
	if second.Code != 0 {
		t.Fatalf("install again: exit code %d\n%s%s", second.Code, second.Stdout, second.Stderr)
	}
	for _, line := range strings.Split(second.Stdout, "\n") {
		if strings.Contains(line, "/") && !strings.Contains(line, "unchanged") {
			t.Errorf("the second install says %q, want everything unchanged", line)
		}
	}
	if after := resourceVersions(t, kubeconfig); after != before {
		t.Errorf("the second install moved something\nbefore:\n%s\nafter:\n%s", before, after)
	}

	t.Run("a changed mirror is refused", func(t *testing.T) {
		changed := t.TempDir()
		copyOf := filepath.Join(changed, "calico", "v3.32.1", "calico.yaml")
		if err := os.MkdirAll(filepath.Dir(copyOf), 0o755); err != nil {
			t.Fatal(err)
		}
		wrong := append([]byte(nil), manifest...)
		wrong[len(wrong)/2] ^= 1
		if err := os.WriteFile(copyOf, wrong, 0o644); err != nil {
			t.Fatal(err)
		}
		got := install(changed)
		if got.Code != 1 {
			t.Errorf("exit code %d, want 1", got.Code)
		}
		for _, content := range [][]byte{manifest, wrong} {
			if digest := fmt.Sprintf("%x", sha256.Sum256(content)); !strings.Contains(got.Stderr, digest) {
				t.Errorf("the error does not name the digest %s: %s", digest, got.Stderr)
			}
		}
	})
}
