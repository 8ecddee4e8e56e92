package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// platform is an operating system and an architecture, as Go names them.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

// binary is the name of a program's file.
func (p platform) binary(program string) string {
	if p.os == "windows" {
		return program + ".exe"
	}
	return program
}

// small leaves out inlining: a tenth less to download for programs that wait for servers, not for their own speed.
var small = []string{"-gcflags=all=-l"}

// build makes a static binary that depends on nothing but the source and Go.
func (r *release) build(ctx context.Context, p platform, pkg, file string, flags ...string) error {
	say("building %s for %s", filepath.Base(file), p)
	args := append([]string{"build", "-trimpath", "-buildvcs=false", "-mod=readonly",
		"-ldflags", "-s -w -buildid= -X github.com/millwright-dev/millwright/internal/cli.version=" + r.version}, flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, "-o", file, pkg)...)
	cmd.Dir = r.root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.os, "GOARCH="+p.arch, "GOFLAGS=")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build %s for %s: %w", pkg, p, err)
	}
	return nil
}

// plugins builds and packs every plugin for every platform.
func (r *release) plugins(ctx context.Context) ([]archive, error) {
	licence, err := os.ReadFile(filepath.Join(r.root, "LICENSE"))
	if err != nil {
		return nil, err
	}
	work, err := os.MkdirTemp("", "release-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	var archives []archive
	// Platform by platform, so that the second plugin finds what the first one had compiled.
	for _, p := range r.platforms {
		for _, plugin := range plugins {
			program := "kubectl-" + plugin
			name := fmt.Sprintf("%s_%s_%s_%s", program, r.version, p.os, p.arch)
			file := filepath.Join(work, name, p.binary(program))
			if err := r.build(ctx, p, "./cmd/"+program, file, small...); err != nil {
				return nil, err
			}
			if err := r.billOfMaterials(file, name); err != nil {
				return nil, err
			}
			content, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			packed, err := pack(p, r.time, []entry{{p.binary(program), 0o755, content}, {"LICENSE", 0o644, licence}})
			if err != nil {
				return nil, err
			}
			a := archive{plugin: plugin, platform: p, file: name + p.extension(), sum: sum(packed)}
			if err := os.WriteFile(filepath.Join(r.out, a.file), packed, 0o644); err != nil {
				return nil, err
			}
			archives = append(archives, a)
		}
	}
	return archives, nil
}
