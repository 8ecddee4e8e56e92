package bundle

import (
	"io/fs"
	"slices"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The one format of addon.yaml that this package reads.
const (
	APIVersion = "bundle.millwright.dev/v1alpha1"
	Kind       = "Addon"
)

// Addon is one entry of a catalogue: what addon.yaml says, and the folder beside it.
type Addon struct {
	APIVersion  string `yaml:"apiVersion"`
	Kind        string `yaml:"kind"`
	Name        string `yaml:"name"`
	Description string `yaml:"description"`
	// Category is one of Categories.
	Category string `yaml:"category"`
	// Parameters is the JSON schema of the parameters of every version that has none of its own.
	Parameters Schema `yaml:"parameters"`
	// Derived are the parts that are made from what the cluster has.
	Derived []Derived `yaml:"derived"`
	// Versions are sorted from the newest to the oldest once loaded.
	Versions []Version `yaml:"versions"`

	files fs.FS
}

// Categories an add-on can be in, in the order in which they are listed.
var Categories = []string{"cni", "dns", "proxy", "cloud", "csi", "metrics", "other"}

// Phases say when in the upgrade of a whole cluster a version moves.
var Phases = []string{"before-control-plane", "after-control-plane", "after-workers"}

// Version is one published version of an add-on.
type Version struct {
	Version string `yaml:"version"`
	// Kubernetes is the range of Kubernetes versions that upstream states, such as ">=1.34 <1.37".
	Kubernetes string `yaml:"kubernetes"`
	// UpgradesFrom is the range of versions from which this one can be reached in one step; any when empty.
	UpgradesFrom string `yaml:"upgradesFrom"`
	// Phase is one of Phases.
	Phase string `yaml:"phase"`
	// DependsOn names add-ons that must be there first.
	DependsOn []string `yaml:"dependsOn"`
	// Sources are the files that the kustomization names by URL.
	Sources []Source `yaml:"sources"`
	// Images are the container images of this version as rendered with the defaults.
	Images []string `yaml:"images"`
	// Retain names what is never pruned, beyond the kinds that never are.
	Retain []ObjectRef `yaml:"retain"`
	// Health says when objects are healthy, beyond the conventions of Kubernetes.
	Health []HealthCheck `yaml:"health"`
	// Moved names objects of earlier versions that have a successor of another name here, which cannot run beside them.
	Moved []ObjectRef `yaml:"moved"`
	// Recreate names objects that may be deleted and made anew where the server refuses to change a field.
	Recreate []ObjectRef `yaml:"recreate"`
	// Untested says that the published files were not at hand when the entry was made: no test has rendered it.
	Untested bool `yaml:"untested"`
	// Parameters replaces the add-on's schema for this version.
	Parameters Schema `yaml:"parameters"`

	semver *semver.Version
}

// Source is a file that upstream publishes. Its text is never part of the catalogue.
type Source struct {
	URL string `yaml:"url"`
	// SHA256 of the file, 64 hexadecimal digits.
	SHA256 string `yaml:"sha256"`
	// Path of the file below a mirror; the path of URL when empty.
	Path string `yaml:"path"`
}

// ObjectRef names objects; empty fields match all.
type ObjectRef struct {
	Group     string `yaml:"group"`
	Kind      string `yaml:"kind"`
	Namespace string `yaml:"namespace"`
	Name      string `yaml:"name"`
}

// Matches tells whether an object is among those that r names.
func (r ObjectRef) Matches(gk schema.GroupKind, namespace, name string) bool {
	return r.Kind == gk.Kind && r.Group == gk.Group &&
		(r.Namespace == "" || r.Namespace == namespace) &&
		(r.Name == "" || r.Name == name)
}

// AnyMatches tells whether one of refs matches an object.
func AnyMatches(refs []ObjectRef, gk schema.GroupKind, namespace, name string) bool {
	return slices.ContainsFunc(refs, func(r ObjectRef) bool { return r.Matches(gk, namespace, name) })
}

// Version returns the version called name, with or without a leading "v".
func (a *Addon) Version(name string) (*Version, error) {
	want, err := semver.NewVersion(name)
	for i := range a.Versions {
		v := &a.Versions[i]
		if v.Version == name || err == nil && v.semver.Equal(want) {
			return v, nil
		}
	}
	return nil, &UnknownError{
		What: "version", Name: name, Of: "add-on " + a.Name,
		Known: a.VersionNames(),
	}
}

// VersionNames lists the versions, newest first.
func (a *Addon) VersionNames() []string {
	names := make([]string, 0, len(a.Versions))
	for _, v := range a.Versions {
		names = append(names, v.Version)
	}
	return names
}

// schemaOf returns the JSON schema of the parameters of a version.
func (a *Addon) schemaOf(v *Version) Schema {
	if v.Parameters != nil {
		return v.Parameters
	}
	return a.Parameters
}
