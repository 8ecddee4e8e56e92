package main

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// nonroot is the user of the image: the number that the Deployment names, so that runAsNonRoot can be checked.
const nonroot = "65532"

// operator builds the operator for each Linux platform and writes image/, an OCI layout with one index.
func (r *release) operator(ctx context.Context) error {
	work, err := os.MkdirTemp("", "release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	roots := rootCertificates()
	var index v1.ImageIndex = mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	images := 0
	for _, p := range r.platforms {
		if p.os != "linux" {
			continue
		}
		file := filepath.Join(work, p.arch, "operator")
		if err := r.build(ctx, p, "./operator", file); err != nil {
			return err
		}
		if err := r.billOfMaterials(file, fmt.Sprintf("operator_%s_%s_%s", r.version, p.os, p.arch)); err != nil {
			return err
		}
		binary, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		img, err := image(p, r.version, r.time, binary, roots)
		if err != nil {
			return fmt.Errorf("image for %s: %w", p, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: p.os, Architecture: p.arch}},
		})
		images++
	}
	if images == 0 {
		say("no image: no Linux among the platforms")
		return nil
	}
	path, err := layout.Write(filepath.Join(r.out, "image"), empty.Index)
	if err != nil {
		return err
	}
	return path.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": r.image + ":" + r.version,
	}))
}

// image is a binary, root certificates and a user: nothing to log in to, nothing to run but the operator.
func image(p platform, version string, when time.Time, binary, roots []byte) (v1.Image, error) {
	base := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	base = mutate.ConfigMediaType(base, types.OCIConfigJSON)
	system := []entry{
		{"etc/", 0o755 | fs.ModeDir, nil},
		{"etc/passwd", 0o644, []byte("root:x:0:0:root:/:/sbin/nologin\nnonroot:x:" + nonroot + ":" + nonroot + ":nonroot:/:/sbin/nologin\n")},
		{"etc/group", 0o644, []byte("root:x:0:\nnonroot:x:" + nonroot + ":\n")},
		{"etc/ssl/", 0o755 | fs.ModeDir, nil},
		{"etc/ssl/certs/", 0o755 | fs.ModeDir, nil},
		{"etc/ssl/certs/ca-certificates.crt", 0o644, roots},
		{"tmp/", 0o777 | fs.ModeDir | fs.ModeSticky, nil},
	}
	// The certificates change seldom and the binary always: two layers.
	img := base
	for _, entries := range [][]entry{system, {{"operator", 0o755, binary}}} {
		layer, err := layerOf(when, entries)
		if err != nil {
			return nil, err
		}
		if img, err = mutate.AppendLayers(img, layer); err != nil {
			return nil, err
		}
	}
	file, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture = p.os, p.arch
	file.Created = v1.Time{Time: when}
	file.Config = v1.Config{
		Entrypoint: []string{"/operator"}, User: nonroot + ":" + nonroot, WorkingDir: "/",
		Env: []string{"SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"},
		Labels: map[string]string{
			"org.opencontainers.image.title":    "millwright-operator",
			"org.opencontainers.image.version":  version,
			"org.opencontainers.image.licenses": "Apache-2.0",
			"org.opencontainers.image.source":   "https://github.com/millwright-dev/millwright",
		},
	}
	for i := range file.History {
		file.History[i].Created = v1.Time{Time: when}
	}
	return mutate.ConfigFile(img, file)
}

func layerOf(when time.Time, entries []entry) (v1.Layer, error) {
	var packed bytes.Buffer
	if err := writeTar(&packed, when, entries); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(packed.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer))
}

// rootCertificates are Mozilla's, as Go's own distribution of them has them, without those that are restricted in a way
// that a PEM file cannot say.
func rootCertificates() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue
		}
		_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
	}
	return out.Bytes()
}
