package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

var when = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func TestTheSameFilesArePackedIntoTheSameBytes(t *testing.T) {
	entries := []entry{{"kubectl-machines", 0o755, []byte("binary")}, {"LICENSE", 0o644, []byte("licence")}}
	for _, p := range []platform{{"linux", "amd64"}, {"windows", "arm64"}} {
		first, err := pack(p, when, entries)
		if err != nil {
			t.Fatal(err)
		}
		second, err := pack(p, when.Local(), entries)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first, second) {
			t.Errorf("%s: two packings differ", p)
		}
	}
}

func TestAnArchiveHoldsWhatWasPacked(t *testing.T) {
	entries := []entry{{"kubectl-machines", 0o755, []byte("binary")}}
	packed, err := pack(platform{"linux", "amd64"}, when, entries)
	if err != nil {
		t.Fatal(err)
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	reader := tar.NewReader(unzipped)
	header, err := reader.Next()
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(reader)
	if err != nil || string(content) != "binary" || header.Mode != 0o755 || !header.ModTime.Equal(when) {
		t.Errorf("got %q, mode %o, %s, %v", content, header.Mode, header.ModTime, err)
	}

	packed, err = pack(platform{"windows", "amd64"}, when, entries)
	if err != nil {
		t.Fatal(err)
	}
	zipped, err := zip.NewReader(bytes.NewReader(packed), int64(len(packed)))
	if err != nil {
		t.Fatal(err)
	}
	if len(zipped.File) != 1 || zipped.File[0].Name != "kubectl-machines" {
		t.Errorf("got %v", zipped.File)
	}
}

// krewManifest is what krew reads of a manifest.
type krewManifest struct {
	Spec struct {
		Version   string
		Platforms []struct {
			URI, SHA256, Bin string
			Selector         struct{ MatchLabels map[string]string }
		}
	}
}

func TestEachPluginsManifestNamesEveryArchive(t *testing.T) {
	for _, plugin := range plugins {
		manifest := render(t, plugin, platforms)
		if len(manifest.Spec.Platforms) != len(platforms) || manifest.Spec.Version != "v1.2.3" {
			t.Errorf("%s: version %s, %d platforms", plugin, manifest.Spec.Version, len(manifest.Spec.Platforms))
		}
		for _, p := range manifest.Spec.Platforms {
			want := "https://example.test/v1.2.3/kubectl-" + plugin + "_v1.2.3_" + p.Selector.MatchLabels["os"] + "_" + p.Selector.MatchLabels["arch"]
			if !strings.HasPrefix(p.URI, want+".") || p.SHA256 != sum([]byte(filepath.Base(p.URI))) {
				t.Errorf("%s: got %s with %s, want %s", plugin, p.URI, p.SHA256, want)
			}
		}
	}
}

func TestAManifestLeavesOutWhatWasNotAskedFor(t *testing.T) {
	manifest := render(t, "machines", []platform{{"linux", "arm64"}})
	if len(manifest.Spec.Platforms) != 1 || manifest.Spec.Platforms[0].Selector.MatchLabels["arch"] != "arm64" {
		t.Errorf("got %v", manifest.Spec.Platforms)
	}
}

func TestAManifestThatNamesAnUnknownArchiveIsRefused(t *testing.T) {
	r := release{version: "v1.2.3", platforms: platforms}
	_, err := r.manifest(`uri: {{addURIAndSha "https://example.test/{{ .TagName }}/other_{{ .TagName }}_linux_amd64.tar.gz" .TagName }}`, nil)
	if err == nil || !strings.Contains(err.Error(), "other_v1.2.3_linux_amd64.tar.gz, which was not made") {
		t.Errorf("got %v", err)
	}
}

// render fills in a plugin's template as a release of some platforms would.
func render(t *testing.T, plugin string, built []platform) krewManifest {
	t.Helper()
	source, err := os.ReadFile(filepath.Join("..", "..", "krew", plugin+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	r := release{version: "v1.2.3", baseURL: "https://example.test", platforms: built}
	var archives []archive
	for _, p := range built {
		file := "kubectl-" + plugin + "_v1.2.3_" + p.os + "_" + p.arch + p.extension()
		archives = append(archives, archive{plugin: plugin, platform: p, file: file, sum: sum([]byte(file))})
	}
	out, err := r.manifest(string(source), archives)
	if err != nil {
		t.Fatal(err)
	}
	var manifest krewManifest
	if err := yaml.UnmarshalStrict(out, &map[string]any{}); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(out, &manifest); err != nil {
		t.Fatal(err)
	}
	return manifest
}

func TestBadFlagsAreRefused(t *testing.T) {
	for _, test := range []struct{ args, want string }{
		{"", `-version is ""`},
		{"-version 1.2.3", `-version is "1.2.3"`},
		{"-version v1.2.3 -platforms plan9/amd64", `no release is made for "plan9/amd64"`},
		{"-version v1.2.3 more", `unexpected argument "more"`},
	} {
		err := run(t.Context(), strings.Fields(test.args))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %s", test.args, err, test.want)
		}
	}
}

func TestAFolderThatIsNotOursIsLeftAlone(t *testing.T) {
	out := t.TempDir()
	file := filepath.Join(out, "precious")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	r := release{out: out, version: "v1.2.3"}
	if err := r.make(t.Context()); err == nil || !strings.Contains(err.Error(), "was not made by this program") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}

func TestTheImageHoldsTheOperatorAndRootCertificates(t *testing.T) {
	p := platform{"linux", "arm64"}
	img, err := image(p, "v1.2.3", when, []byte("binary"), rootCertificates())
	if err != nil {
		t.Fatal(err)
	}
	again, err := image(p, "v1.2.3", when, []byte("binary"), rootCertificates())
	if err != nil {
		t.Fatal(err)
	}
	first, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	second, err := again.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if first != second {
		t.Errorf("two images of the same files differ: %s, %s", first, second)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Architecture != "arm64" || config.Config.User != "65532:65532" || config.Config.Entrypoint[0] != "/operator" {
		t.Errorf("got %+v", config)
	}
	if !bytes.Contains(rootCertificates(), []byte("BEGIN CERTIFICATE")) {
		t.Error("no root certificates")
	}
}
