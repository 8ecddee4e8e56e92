package addons

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/addons"
	"github.com/millwright-dev/millwright/internal/apply"
	"github.com/millwright-dev/millwright/internal/bundle"
	"github.com/millwright-dev/millwright/test/apiserver"
)

// facts suit the API server of these tests.
var facts = bundle.Facts{
	Name: "test", KubernetesVersion: "v1.37.2", PodCIDR: "10.9.0.0/16", ServiceCIDR: "10.0.0.0/24",
	DNSIP: "10.0.0.10", Domain: "cluster.local", ControlPlaneHost: "192.0.2.7", ControlPlanePort: "6443",
}

func TestEveryEntryOfTheCatalogueAppliesAndTwiceIsOnce(t *testing.T) {
	t.Run("on Kubernetes 1.37", func(t *testing.T) { testCatalogue(t, admin) })
	t.Run("on Kubernetes 1.36", func(t *testing.T) {
		const version = "v1.36.3"
		if !apiserver.Has(version) {
			t.Skipf("run `bin/sandbox build %s` once", version)
		}
		older, err := apiserver.StartVersion(version)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := older.Stop(); err != nil {
				t.Error(err)
			}
		})
		c, err := client.NewWithWatch(older.Admin, client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		testCatalogue(t, c)
	})
}

// testCatalogue installs every entry from its oldest version to its newest, and
// back: the way of an upgrade and of a rollback.
func testCatalogue(t *testing.T, c client.WithWatch) {
	catalogue, err := bundle.Load(addons.Files)
	if err != nil {
		t.Fatal(err)
	}
	engine := &apply.Engine{Client: c}
	for _, addon := range catalogue.Addons() {
		order := make([]*bundle.Version, 0, len(addon.Versions)+1)
		for i := range addon.Versions {
			order = append([]*bundle.Version{&addon.Versions[i]}, order...)
		}
		order = append(order, order[0])
		t.Run(addon.Name, func(t *testing.T) {
			for _, v := range order {
				set := apply.Set{Name: addon.Name, Version: v.Version, Objects: render(t, addon, v)}
				install(t, engine, set)
				before := resourceVersions(t, c, set)
				if plan := install(t, engine, set); plan.Count(apply.ActionUnchanged) != len(set.Objects) {
					t.Errorf("%s: %d of %d objects unchanged the second time", v.Version, plan.Count(apply.ActionUnchanged), len(set.Objects))
				}
				if diff := cmp.Diff(before, resourceVersions(t, c, set)); diff != "" {
					t.Errorf("%s: the second install moved something (-before +after):\n%s", v.Version, diff)
				}
			}
		})
	}
}

// render renders a version for the API server of these tests; without a mirror
// that has its sources the test is skipped.
func render(t *testing.T, addon *bundle.Addon, v *bundle.Version) []*unstructured.Unstructured {
	t.Helper()
	mirror := os.Getenv("MILLWRIGHT_MIRROR")
	if mirror == "" && len(v.Sources) > 0 {
		t.Skip("MILLWRIGHT_MIRROR names no mirror that has the published files")
	}
	sources, err := (&bundle.Fetcher{Mirror: mirror}).Fetch(context.Background(), v)
	if errors.Is(err, fs.ErrNotExist) && v.Untested {
		t.Skip("the mirror does not have the published files, and the entry says so")
	}
	if err != nil {
		t.Fatal(err)
	}
	objects, err := bundle.Render(bundle.Input{Addon: addon, Version: v, Facts: facts, Sources: sources})
	if err != nil {
		t.Fatal(err)
	}
	return objects
}
