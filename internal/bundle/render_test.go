package bundle

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the golden files anew")

// someFacts are those of a cluster whose every value differs from the bundles' defaults.
var someFacts = Facts{
	Name: "prod", KubernetesVersion: "v1.35.4", PodCIDR: "10.1.0.0/16", ServiceCIDR: "10.2.0.0/16",
	DNSIP: "10.2.0.10", Domain: "prod.example", ControlPlaneHost: "192.0.2.7", ControlPlanePort: "7443",
}

func renderDemo(t *testing.T, version string, values map[string]any) ([]*unstructured.Unstructured, error) {
	t.Helper()
	addon, v := demoVersion(t, version)
	sources, err := (&Fetcher{Mirror: testMirror}).Fetch(context.Background(), v)
	if err != nil {
		t.Fatal(err)
	}
	return Render(Input{Addon: addon, Version: v, Facts: someFacts, Values: values, Sources: sources})
}

func documents(t *testing.T, objects []*unstructured.Unstructured) []byte {
	t.Helper()
	var b bytes.Buffer
	for _, object := range objects {
		content, err := yaml.Marshal(object.Object)
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString("---\n")
		b.Write(content)
	}
	return b.Bytes()
}

// compareGolden compares with testdata/golden/<name>, or writes it with -update.
func compareGolden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata/golden", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

func TestABundleIsRenderedWithFactsAndParameters(t *testing.T) {
	cases := map[string]struct {
		version string
		values  map[string]any
	}{
		"demo-1.0.0.yaml":            {"1.0.0", nil},
		"demo-2.0.0.yaml":            {"2.0.0", nil},
		"demo-2.0.0-parameters.yaml": {"2.0.0", map[string]any{"mtu": "9000", "mode": "fast", "verbose": true}},
	}
	for golden, tc := range cases {
		t.Run(golden, func(t *testing.T) {
			objects, err := renderDemo(t, tc.version, tc.values)
			if err != nil {
				t.Fatal(err)
			}
			first := documents(t, objects)
			compareGolden(t, golden, first)

			again, err := renderDemo(t, tc.version, tc.values)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(first, documents(t, again)) {
				t.Error("a second render differs")
			}
		})
	}
}

func TestBadParametersAreRefused(t *testing.T) {
	cases := map[string]struct {
		values map[string]any
		want   string
	}{
		"unknown":               {map[string]any{"mut": 1400}, `unknown parameter "mut" of demo 2.0.0: did you mean "mtu"? (there are: mode, mtu, verbose)`},
		"text for a number":     {map[string]any{"mtu": "much"}, `demo 2.0.0: parameter "mtu": got string, want integer`},
		"a number out of range": {map[string]any{"mtu": "9001"}, `demo 2.0.0: parameter "mtu": maximum: got 9,001, want 9,000`},
		"not in the list":       {map[string]any{"mode": "slow"}, `demo 2.0.0: parameter "mode": value must be one of 'fast', 'safe'`},
		"not yes or no":         {map[string]any{"verbose": "maybe"}, `demo 2.0.0: parameter "verbose": got string, want boolean`},
		"a list":                {map[string]any{"mode": []any{"fast"}}, `demo 2.0.0: parameter "mode": got array, want string`},
		"a fact":                {map[string]any{"cluster.podCIDR": "10.9.0.0/16"}, "cluster.podCIDR is a fact of the cluster, not a parameter of demo"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := renderDemo(t, "2.0.0", tc.values)
			if err == nil {
				t.Fatal("the parameters are accepted")
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAFactThatIsNotKnownIsNamed(t *testing.T) {
	addon, v := demoVersion(t, "2.0.0")
	err := Input{Addon: addon, Version: v, Facts: Facts{KubernetesVersion: "v1.35.4"}}.Check()
	var unknown *UnknownFactError
	if !errors.As(err, &unknown) || unknown.Fact != "cluster.podCIDR" {
		t.Errorf("error %v, want that cluster.podCIDR is not known", err)
	}
}

func TestASourceThatWasNotFetchedIsAnError(t *testing.T) {
	addon, v := demoVersion(t, "2.0.0")
	_, err := Render(Input{Addon: addon, Version: v, Facts: someFacts})
	if err == nil || !strings.Contains(err.Error(), sourceURL) {
		t.Errorf("error %v, want one that names %s", err, sourceURL)
	}
}
