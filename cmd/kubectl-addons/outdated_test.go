package main

import (
	"testing"
	"testing/fstest"

	"github.com/millwright-dev/millwright/internal/apply"
	"github.com/millwright-dev/millwright/internal/bundle"
)

func TestWhatAnAddonNeedsForTheNextKubernetes(t *testing.T) {
	files := fstest.MapFS{"net/addon.yaml": {Data: []byte(`
apiVersion: bundle.millwright.dev/v1alpha1
kind: Addon
name: net
description: a network
category: cni
versions:
- {version: 2.0.0, kubernetes: ">=1.36 <1.38", phase: before-control-plane}
- {version: 1.0.0, kubernetes: ">=1.35 <1.37", phase: before-control-plane}
`)}}
	for _, version := range []string{"1.0.0", "2.0.0"} {
		files["net/"+version+"/kustomization.yaml"] = &fstest.MapFile{Data: []byte("resources: []\n")}
	}
	catalogue, err := bundle.Load(files)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ addon, installed, kubernetes, next, upgrade, needs string }{
		"it is good for both":            {"net", "1.0.0", "v1.35.4", "v1.36.0", "", "as it is"},
		"a newer one comes first":        {"net", "1.0.0", "v1.36.3", "v1.37.0", "2.0.0", "2.0.0"},
		"no version is stated for it":    {"net", "2.0.0", "v1.37.2", "v1.38.0", "", "none"},
		"the catalogue does not have it": {"other", "1.0.0", "v1.37.2", "v1.38.0", "unknown", "unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			upgrade, needs, err := compareVersions(catalogue, &apply.Parent{Name: tc.addon, Version: tc.installed}, tc.kubernetes, tc.next)
			if err != nil || upgrade != tc.upgrade || needs != tc.needs {
				t.Errorf("upgrade %q, needs %q (%v); want %q, %q", upgrade, needs, err, tc.upgrade, tc.needs)
			}
		})
	}
	if next, err := nextMinor("v1.37.2+k3s1"); err != nil || next != (minorVersion{"v1.38", "v1.38.0"}) {
		t.Errorf("after v1.37.2+k3s1 comes %v (%v)", next, err)
	}
}
