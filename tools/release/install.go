package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// installs are the ways to install the operator: the file in the release, and the kustomization that it is built from.
var installs = map[string]string{
	"install.yaml":                     "manifests/default",
	"install-addons-and-upgrades.yaml": "manifests/beside-upstream",
}

// placeholder is the image's name in the kustomizations.
const placeholder = "millwright-operator"

// installManifests builds the kustomizations with the image of this release. An overlay outside the repository sets
// the image, so that a release never edits what is committed.
func (r *release) installManifests(ctx context.Context) error {
	for file, folder := range installs {
		say("building %s", file)
		overlay, err := os.MkdirTemp("", "release-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(overlay)
		base, err := filepath.Rel(overlay, filepath.Join(r.root, folder))
		if err != nil {
			return err
		}
		kustomization := fmt.Sprintf("resources: [%q]\nimages:\n- {name: %s, newName: %q, newTag: %q}\n", base, placeholder, r.image, r.version)
		if err := os.WriteFile(filepath.Join(overlay, "kustomization.yaml"), []byte(kustomization), 0o644); err != nil {
			return err
		}
		cmd := exec.CommandContext(ctx, "go", "tool", "-modfile=tools/go.mod", "kustomize", "build", overlay)
		cmd.Dir, cmd.Stderr = r.root, os.Stderr
		built, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("build %s: %w", folder, err)
		}
		if !bytes.Contains(built, []byte("image: "+r.image+":"+r.version)) {
			return fmt.Errorf("%s does not run the image %s: is its name %s there?", folder, r.image, placeholder)
		}
		if err := os.WriteFile(filepath.Join(r.out, file), built, 0o644); err != nil {
			return err
		}
	}
	return nil
}
